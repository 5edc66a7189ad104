"""Trees of inputs and outputs: nested dicts, lists, tuples and named tuples whose leaves are counted values.

In an artifact a tree is JSON: an integer for a leaf (its position among the inputs or outputs), null for None, and for
a container one of ``{"list": [...]}``, ``{"tuple": [...]}``, ``{"dict": [[key, tree], ...]}`` (keys are strings or
integers, kept in order) and ``{"namedtuple": name, "fields": [[field, tree], ...]}``. The inputs of a function are
``{"args": [tree, ...], "kwargs": [[name, tree], ...]}``. Leaves are numbered 0, 1, 2, … in the order they stand in.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

MAX_DEPTH = 200


@dataclass(frozen=True)
class Leaf:
    """The value at position ``index``."""

    index: int


@dataclass(frozen=True)
class Container:
    """``kind`` is "list", "tuple", "dict", "namedtuple", "none" or "call"; ``keys`` are the dict's keys or the named
    tuple's fields; ``name`` the named tuple's. A call has its positional arguments first, then those in ``keys``."""

    kind: str
    children: tuple[Tree, ...] = ()
    keys: tuple[str | int, ...] = ()
    name: str = ""


Tree = Leaf | Container


class TreeError(ValueError):
    """A JSON tree that is not one; ``pointer`` leads to the place."""

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message)
        self.pointer = pointer


def _pairs(value: Any, at: str, integers: bool) -> list[tuple[str | int, Any]]:
    if not isinstance(value, list):
        raise TreeError("expected a list of [key, tree] pairs", at)
    pairs: list[tuple[str | int, Any]] = []
    earlier: set[str | int] = set()
    for k, pair in enumerate(value):
        if not isinstance(pair, list) or len(pair) != 2:
            raise TreeError("expected a pair [key, tree]", f"{at}/{k}")
        key = pair[0]
        if not isinstance(key, str) and not (integers and isinstance(key, int) and not isinstance(key, bool)):
            raise TreeError("a key must be a string" + (" or an integer" if integers else ""), f"{at}/{k}/0")
        if key in earlier:
            raise TreeError(f"the key {key!r} is there twice", f"{at}/{k}/0")
        earlier.add(key)
        pairs.append((key, pair[1]))
    return pairs


def _children(values: Any, at: str, depth: int, counter: list[int]) -> tuple[Tree, ...]:
    if not isinstance(values, list):
        raise TreeError("expected a list of trees", at)
    return tuple(_decode(value, f"{at}/{k}", depth + 1, counter) for k, value in enumerate(values))


def _keyed(value: Any, at: str, depth: int, counter: list[int], integers: bool = False) -> tuple[Any, Any]:
    pairs = _pairs(value, at, integers)
    children = tuple(_decode(child, f"{at}/{k}/1", depth + 1, counter) for k, (_, child) in enumerate(pairs))
    return tuple(key for key, _ in pairs), children


def _decode(value: Any, at: str, depth: int, counter: list[int]) -> Tree:
    if depth > MAX_DEPTH:
        raise TreeError(f"a tree may be nested {MAX_DEPTH} deep at most", at)
    if value is None:
        return Container("none")
    if isinstance(value, int) and not isinstance(value, bool):
        if value != counter[0]:
            raise TreeError(f"leaves are numbered in order: expected {counter[0]}, found {value}", at)
        counter[0] += 1
        return Leaf(value)
    if isinstance(value, dict):
        match sorted(value):
            case ["list"] | ["tuple"] as kind:
                return Container(kind[0], _children(value[kind[0]], f"{at}/{kind[0]}", depth, counter))
            case ["dict"]:
                keys, children = _keyed(value["dict"], f"{at}/dict", depth, counter, integers=True)
                return Container("dict", children, keys)
            case ["fields", "namedtuple"]:
                name = value["namedtuple"]
                if not isinstance(name, str) or not name.isidentifier():
                    raise TreeError("a named tuple's name must be an identifier", f"{at}/namedtuple")
                keys, children = _keyed(value["fields"], f"{at}/fields", depth, counter)
                return Container("namedtuple", children, keys, name)
    raise TreeError("expected an integer, null, or a list, tuple, dict or namedtuple object", at)


def decode(value: Any, leaves: int) -> Tree:
    """The tree that JSON ``value`` says, with exactly ``leaves`` leaves. TreeError with a pointer otherwise."""
    counter = [0]
    if isinstance(value, dict) and sorted(value) == ["args", "kwargs"]:
        args = _children(value["args"], "/args", 0, counter)
        keys, named = _keyed(value["kwargs"], "/kwargs", 0, counter)
        tree: Tree = Container("call", args + named, keys)
    else:
        tree = _decode(value, "", 0, counter)
    if counter[0] != leaves:
        raise TreeError(f"the tree has {counter[0]} leaves for {leaves} values")
    return tree


def encode(tree: Tree) -> Any:
    """The JSON of a tree; the inverse of ``decode``."""
    if isinstance(tree, Leaf):
        return tree.index
    children = [encode(child) for child in tree.children]
    match tree.kind:
        case "none":
            return None
        case "list" | "tuple":
            return {tree.kind: children}
        case "dict":
            return {"dict": [list(pair) for pair in zip(tree.keys, children, strict=True)]}
        case "namedtuple":
            return {"namedtuple": tree.name, "fields": [list(pair) for pair in zip(tree.keys, children, strict=True)]}
        case _:
            split = len(children) - len(tree.keys)
            named = [list(pair) for pair in zip(tree.keys, children[split:], strict=True)]
            return {"args": children[:split], "kwargs": named}


def build(tree: Tree, values: Sequence[Any]) -> Any:
    """The Python object that the tree describes, ``values`` at its leaves; a call gives ``(args, kwargs)``."""
    if isinstance(tree, Leaf):
        return values[tree.index]
    children = [build(child, values) for child in tree.children]
    match tree.kind:
        case "none":
            return None
        case "list":
            return children
        case "tuple":
            return tuple(children)
        case "dict":
            return dict(zip(tree.keys, children, strict=True))
        case "namedtuple":
            return _named(tree.name, tuple(map(str, tree.keys)))(*children)
        case _:
            split = len(children) - len(tree.keys)
            return tuple(children[:split]), dict(zip(tree.keys, children[split:], strict=True))


@lru_cache(maxsize=256)
def _named(name: str, fields: tuple[str, ...]) -> Any:
    """A class of named tuples: to make one takes a hundred times as long as what it is made for."""
    return namedtuple(name, fields, rename=True)


def leaf_paths(tree: Tree, root: str = "") -> list[str]:
    """A readable path per leaf, in order: ``params['w1'][0]``, ``out.mean``."""
    if isinstance(tree, Leaf):
        return [root]
    paths: list[str] = []
    split = len(tree.children) - len(tree.keys)
    for k, child in enumerate(tree.children):
        if tree.kind == "dict":
            step = f"{root}[{tree.keys[k]!r}]"
        elif tree.kind == "namedtuple":
            step = f"{root}.{tree.keys[k]}" if root else str(tree.keys[k])
        elif tree.kind == "call":
            step = f"{root}{tree.keys[k - split]}" if k >= split else f"{root}[{k}]"
        else:
            step = f"{root}[{k}]"
        paths += leaf_paths(child, step)
    return paths
