"""Commands that compiled code follows: launches, and the loops and branches around them, without a return to Python.

A command is some words of 64 bits, its number first. What it works on are *slots*: words that hold addresses, or the
counters of loops. ``follow(frame, start)`` begins at the command ``start`` and returns -1 at ``END``; or, where a jump
goes back and more than the limit of scalar operations has been launched, or copied as much, since, the place to go on
from, so that its caller can look whether it is interrupted. ``frame`` holds the addresses of the commands, of the
slots, of scratch memory and of memory for a launch's arguments, and the limit.

===========  ==============================  ================================================================
command      words behind its number         meaning
===========  ==============================  ================================================================
``END``
``CALL``     entry a b c d work n slot...    entry(a, b, c, d, scratch, the addresses in n slots)
``COPY``     to from bytes                   copies memory between addresses in slots; they do not overlap
``JUMP``     place                           goes on there
``BRANCH``   slot place                      goes on there if the byte at the slot's address is 0
``SET``      slot value                      the slot holds the number
``COUNT``    slot step end place             adds to the slot; goes on there unless it is the end now
``PLACE``    to from counter bytes           an address: the one in a slot and so many bytes for each of the count
``SWAP``     one other                       exchanges two slots
``CHOOSE``   slot bytes signed n place...    goes on at the place whose number is at the slot's address, or the last
===========  ==============================  ================================================================
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

from tlir.floatlib.soft import objects

END, CALL, COPY, JUMP, BRANCH, SET, COUNT, PLACE, SWAP, CHOOSE = range(10)

CODE, SLOTS, SCRATCH, ARGUMENTS, LIMIT = range(5)
"""The words of a frame."""

LEAST = 1 << 8
"""Scalar operations that a launch and a jump back count as at least."""

COPIED = 2
"""The logarithm of the bytes whose copy counts as one of them."""

_LOADS = "\n".join(
    f"""read.{size}:
  %integer.{size} = load i{8 * size}, ptr %choice.p
  %above.{size} = zext i{8 * size} %integer.{size} to i64
  %below.{size} = sext i{8 * size} %integer.{size} to i64
  %read.{size}.value = select i1 %signed, i64 %below.{size}, i64 %above.{size}
  br label %chosen"""
    for size in (1, 2, 4)
)


def _words(name: str, *fields: str) -> str:
    """Loads the words behind the number of a command."""
    lines = []
    for k, field in enumerate(fields, 1):
        lines.append(f"  %{name}.{field}.at = getelementptr i64, ptr %command, i64 {k}")
        lines.append(f"  %{name}.{field} = load i64, ptr %{name}.{field}.at")
    return "\n".join(lines)


def _slot(value: str, index: str) -> str:
    return f"  {value}.at = getelementptr i64, ptr %slots, i64 {index}\n  {value} = load i64, ptr {value}.at"


_SOURCE = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define i64 @follow(ptr %frame, i64 %start) {{
entry:
  %slots.at = getelementptr i64, ptr %frame, i64 {SLOTS}
  %scratch.at = getelementptr i64, ptr %frame, i64 {SCRATCH}
  %arguments.at = getelementptr i64, ptr %frame, i64 {ARGUMENTS}
  %limit.at = getelementptr i64, ptr %frame, i64 {LIMIT}
  %code = load ptr, ptr %frame
  %slots = load ptr, ptr %slots.at
  %scratch = load ptr, ptr %scratch.at
  %arguments = load ptr, ptr %arguments.at
  %limit = load i64, ptr %limit.at
  br label %next
next:
  %at = phi i64 [ %start, %entry ], [ %call.after, %call.run ], [ %copy.after, %copy ], [ %back, %goes.back ],
    [ %branch.to, %branch ], [ %set.after, %set ], [ %count.after, %count ], [ %place.after, %place ],
    [ %swap.after, %swap ], [ %choose.to, %chosen ]
  %left = phi i64 [ %limit, %entry ], [ %call.left, %call.run ], [ %copy.left, %copy ], [ %back.left, %goes.back ],
    [ %left, %branch ], [ %left, %set ], [ %left, %count ], [ %left, %place ], [ %left, %swap ], [ %left, %chosen ]
  %command = getelementptr i64, ptr %code, i64 %at
  %number = load i64, ptr %command
  switch i64 %number, label %end [ i64 {CALL}, label %call i64 {COPY}, label %copy i64 {JUMP}, label %jump
    i64 {BRANCH}, label %branch i64 {SET}, label %set i64 {COUNT}, label %count i64 {PLACE}, label %place
    i64 {SWAP}, label %swap i64 {CHOOSE}, label %choose ]
call:
{_words("call", "entry", "a", "b", "c", "d", "work", "n")}
  %call.slots = getelementptr i64, ptr %command, i64 8
  br label %call.gather
call.gather:
  %k = phi i64 [ 0, %call ], [ %k.1, %call.each ]
  %call.all = icmp uge i64 %k, %call.n
  br i1 %call.all, label %call.run, label %call.each
call.each:
  %call.slot.at = getelementptr i64, ptr %call.slots, i64 %k
  %call.slot = load i64, ptr %call.slot.at
{_slot("%call.address", "%call.slot")}
  %call.argument = getelementptr i64, ptr %arguments, i64 %k
  store i64 %call.address, ptr %call.argument
  %k.1 = add i64 %k, 1
  br label %call.gather
call.run:
  %call.function = inttoptr i64 %call.entry to ptr
  call void %call.function(i64 %call.a, i64 %call.b, i64 %call.c, i64 %call.d, ptr %scratch, ptr %arguments)
  %call.left = sub i64 %left, %call.work
  %call.size = add i64 %call.n, 8
  %call.after = add i64 %at, %call.size
  br label %next
copy:
{_words("copy", "to", "from", "bytes")}
{_slot("%copy.target", "%copy.to")}
{_slot("%copy.source", "%copy.from")}
  %copy.target.p = inttoptr i64 %copy.target to ptr
  %copy.source.p = inttoptr i64 %copy.source to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr %copy.target.p, ptr %copy.source.p, i64 %copy.bytes, i1 false)
  %copy.work = lshr i64 %copy.bytes, {COPIED}
  %copy.left = sub i64 %left, %copy.work
  %copy.after = add i64 %at, 4
  br label %next
jump:
{_words("jump", "to")}
  br label %goes.back
goes.back:
  %back = phi i64 [ %jump.to, %jump ], [ %count.to, %count ]
  %back.left = sub i64 %left, {LEAST}
  %spent = icmp slt i64 %back.left, 0
  br i1 %spent, label %pause, label %next
pause:
  ret i64 %back
branch:
{_words("branch", "slot", "to.zero")}
{_slot("%branch.address", "%branch.slot")}
  %branch.p = inttoptr i64 %branch.address to ptr
  %branch.byte = load i8, ptr %branch.p
  %branch.holds = icmp ne i8 %branch.byte, 0
  %branch.after = add i64 %at, 3
  %branch.to = select i1 %branch.holds, i64 %branch.after, i64 %branch.to.zero
  br label %next
set:
{_words("set", "slot", "value")}
  %set.to = getelementptr i64, ptr %slots, i64 %set.slot
  store i64 %set.value, ptr %set.to
  %set.after = add i64 %at, 3
  br label %next
count:
{_words("count", "slot", "step", "end", "to")}
{_slot("%count.value", "%count.slot")}
  %count.new = add i64 %count.value, %count.step
  store i64 %count.new, ptr %count.value.at
  %count.done = icmp eq i64 %count.new, %count.end
  %count.after = add i64 %at, 5
  br i1 %count.done, label %next, label %goes.back
place:
{_words("place", "to", "from", "counter", "bytes")}
{_slot("%place.first", "%place.from")}
{_slot("%place.count", "%place.counter")}
  %place.offset = mul i64 %place.count, %place.bytes
  %place.address = add i64 %place.first, %place.offset
  %place.at = getelementptr i64, ptr %slots, i64 %place.to
  store i64 %place.address, ptr %place.at
  %place.after = add i64 %at, 5
  br label %next
swap:
{_words("swap", "one", "other")}
{_slot("%swap.first", "%swap.one")}
{_slot("%swap.second", "%swap.other")}
  store i64 %swap.second, ptr %swap.first.at
  store i64 %swap.first, ptr %swap.second.at
  %swap.after = add i64 %at, 3
  br label %next
choose:
{_words("choose", "slot", "bytes", "signed", "n")}
{_slot("%choice", "%choose.slot")}
  %choice.p = inttoptr i64 %choice to ptr
  %signed = icmp ne i64 %choose.signed, 0
  switch i64 %choose.bytes, label %read.8 [ i64 1, label %read.1 i64 2, label %read.2 i64 4, label %read.4 ]
{_LOADS}
read.8:
  %read.8.value = load i64, ptr %choice.p
  br label %chosen
chosen:
  %chosen.number = phi i64 [ %read.1.value, %read.1 ], [ %read.2.value, %read.2 ], [ %read.4.value, %read.4 ],
    [ %read.8.value, %read.8 ]
  %chosen.inside = icmp ult i64 %chosen.number, %choose.n
  %chosen.last = sub i64 %choose.n, 1
  %chosen.index = select i1 %chosen.inside, i64 %chosen.number, i64 %chosen.last
  %chosen.place = add i64 %chosen.index, 5
  %choose.to.at = getelementptr i64, ptr %command, i64 %chosen.place
  %choose.to = load i64, ptr %choose.to.at
  br label %next
end:
  ret i64 -1
}}
"""


@lru_cache(maxsize=1)
def follow() -> Any:
    """``follow(address of a frame, start)`` as a function of Python."""
    address = objects.compile_ir(_SOURCE, ["follow"], objects.PLAIN)["follow"]
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(address)
