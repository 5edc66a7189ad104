"""Threads that take parts of a launch in compiled code.

A launch is a table of parts, ``(a, b, c, d, before)`` each, and a function ``entry(a, b, c, d, scratch, buffers)``. The
threads of a pool and the one that launches take parts one after the other by counting a number up, so who is late takes
fewer; a part begins when the first ``before`` ones are done, all of which have been taken by then. Between launches a
thread looks for the next one for some microseconds, in compiled code, and then waits for its lock: a launch soon after
another costs no call of the system.

``control`` is memory that all threads see, in lines of 64 bytes: ``GENERATION`` counts launches, ``NEXT`` the parts
that are taken (from ``CLOSED`` on, there are none to take), ``FINISHED`` those that are done (``SLEEPS`` says that the
launching thread waits for a lock until all are), and ``ACTIVE`` the threads that may be reading the description of the
launch, which begins at ``PARTS``. That is written only while the launch is closed and nobody is active. Behind it each
thread has a line: whether it waits for its lock, whether a launch has just found it waiting, and the address of its
scratch memory.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
import time
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.soft import objects

GENERATION, NEXT, FINISHED, SLEEPS, ACTIVE, PARTS, MINE, LINES = 0, 8, 16, 17, 24, 32, 36, 40
"""Places in ``control``, in words of 8 bytes; ``PARTS`` is followed by the addresses of the table, the entry and the
buffers, ``MINE`` is the address of the launching thread's scratch memory."""
CLOSED = 1 << 40
LOOKING = 2e-4
"""Seconds for which a thread looks for the next launch, or for the end of one, before it waits for its lock: it takes
50 microseconds to wake up again, and the others of a launch may be at parts of 100 microseconds."""
LOOKS = 1000
INTERRUPTION = 0.05
"""Seconds after which a thread that waits looks whether it is interrupted, where nothing else tells it."""
HUGE, HUGE_FROM = 1 << 21, 1 << 20
"""The size of a huge page, and the bytes of memory from which it is asked for."""
ALIGNMENT = 64

_SOURCE = """
{pause_declaration}

; takes parts until there are none, at most %limit; 0 where there may be more, 1 where there are none, 2 where the last
; part of all is done and the launching thread has to be woken
define i64 @take(ptr %control, ptr %scratch_at, i64 %limit) {{
start:
  %next = getelementptr i64, ptr %control, i64 {NEXT}
  %finished = getelementptr i64, ptr %control, i64 {FINISHED}
  %sleeps_at = getelementptr i64, ptr %control, i64 {SLEEPS}
  %active = getelementptr i64, ptr %control, i64 {ACTIVE}
  %parts_at = getelementptr i64, ptr %control, i64 {PARTS}
  %table_at = getelementptr i64, ptr %parts_at, i64 1
  %entry_at = getelementptr i64, ptr %parts_at, i64 2
  %buffers_at = getelementptr i64, ptr %parts_at, i64 3
  atomicrmw add ptr %active, i64 1 seq_cst
  br label %more
more:
  %taken = phi i64 [ 0, %start ], [ %taken.1, %begin ]
  %enough = icmp uge i64 %taken, %limit
  br i1 %enough, label %leave, label %claim
claim:
  %number = atomicrmw add ptr %next, i64 1 seq_cst
  %closed = icmp uge i64 %number, {CLOSED}
  br i1 %closed, label %leave, label %compare
compare:
  %parts = load i64, ptr %parts_at
  %none = icmp uge i64 %number, %parts
  br i1 %none, label %leave, label %run
run:
  %table = load ptr, ptr %table_at
  %entry = load ptr, ptr %entry_at
  %buffers = load ptr, ptr %buffers_at
  %scratch = load ptr, ptr %scratch_at
  %first = mul i64 %number, 5
  %a.at = getelementptr i64, ptr %table, i64 %first
  %b.at = getelementptr i64, ptr %a.at, i64 1
  %c.at = getelementptr i64, ptr %a.at, i64 2
  %d.at = getelementptr i64, ptr %a.at, i64 3
  %before.at = getelementptr i64, ptr %a.at, i64 4
  %a = load i64, ptr %a.at
  %b = load i64, ptr %b.at
  %c = load i64, ptr %c.at
  %d = load i64, ptr %d.at
  %before = load i64, ptr %before.at
  br label %early
early:
  %others = load atomic i64, ptr %finished seq_cst, align 8
  %ready = icmp uge i64 %others, %before
  br i1 %ready, label %begin, label %later
later:
  {pause}
  br label %early
begin:
  call void %entry(i64 %a, i64 %b, i64 %c, i64 %d, ptr %scratch, ptr %buffers)
  %earlier = atomicrmw add ptr %finished, i64 1 seq_cst
  %taken.1 = add i64 %taken, 1
  %all = add i64 %earlier, 1
  %last = icmp eq i64 %all, %parts
  br i1 %last, label %wake, label %more
wake:
  %sleeps = atomicrmw xchg ptr %sleeps_at, i64 0 seq_cst
  %result = add i64 %sleeps, 1
  br label %leave
leave:
  %done = phi i64 [ 0, %more ], [ 1, %claim ], [ 1, %compare ], [ %result, %wake ]
  atomicrmw sub ptr %active, i64 1 seq_cst
  ret i64 %done
}}

; takes part in launches until none has come for a while; then the thread has to wait for its lock. 1 where it has to
; wake the launching thread before
define i64 @serve(ptr %control, ptr %mine, i64 %spins) {{
start:
  %generation_at = getelementptr i64, ptr %control, i64 {GENERATION}
  %scratch_at = getelementptr i64, ptr %mine, i64 2
  br label %launch
launch:
  %generation = load atomic i64, ptr %generation_at seq_cst, align 8
  %taken = call i64 @take(ptr %control, ptr %scratch_at, i64 -1)
  %sleeps = icmp eq i64 %taken, 2
  br i1 %sleeps, label %end, label %look
look:
  %turn = phi i64 [ 0, %launch ], [ %turn.1, %again ]
  %now = load atomic i64, ptr %generation_at seq_cst, align 8
  %changed = icmp ne i64 %now, %generation
  br i1 %changed, label %launch, label %wait
wait:
  %long = icmp uge i64 %turn, %spins
  br i1 %long, label %park, label %again
again:
  {pause}
  %turn.1 = add i64 %turn, 1
  br label %look
park:
  atomicrmw xchg ptr %mine, i64 1 seq_cst
  %last = load atomic i64, ptr %generation_at seq_cst, align 8
  %missed = icmp ne i64 %last, %generation
  br i1 %missed, label %stay, label %end
stay:
  %was = atomicrmw xchg ptr %mine, i64 0 seq_cst
  %own = icmp eq i64 %was, 1
  br i1 %own, label %launch, label %end
end:
  %result = phi i64 [ 1, %launch ], [ 0, %park ], [ 0, %stay ]
  ret i64 %result
}}

; begins a launch; how many of the first %threads have to be woken, or -1 where somebody still reads the last one
define i64 @post(ptr %control, i64 %parts, ptr %table, ptr %entry, ptr %buffers, i64 %threads) {{
start:
  %generation_at = getelementptr i64, ptr %control, i64 {GENERATION}
  %next = getelementptr i64, ptr %control, i64 {NEXT}
  %finished = getelementptr i64, ptr %control, i64 {FINISHED}
  %active = getelementptr i64, ptr %control, i64 {ACTIVE}
  %parts_at = getelementptr i64, ptr %control, i64 {PARTS}
  %table_at = getelementptr i64, ptr %parts_at, i64 1
  %entry_at = getelementptr i64, ptr %parts_at, i64 2
  %buffers_at = getelementptr i64, ptr %parts_at, i64 3
  atomicrmw xchg ptr %next, i64 {CLOSED} seq_cst
  br label %busy
busy:
  %turn = phi i64 [ 0, %start ], [ %turn.1, %again ]
  %readers = load atomic i64, ptr %active seq_cst, align 8
  %free = icmp eq i64 %readers, 0
  br i1 %free, label %write, label %wait
wait:
  %long = icmp uge i64 %turn, {LOOKS}
  br i1 %long, label %end, label %again
again:
  {pause}
  %turn.1 = add i64 %turn, 1
  br label %busy
write:
  store i64 %parts, ptr %parts_at
  store ptr %table, ptr %table_at
  store ptr %entry, ptr %entry_at
  store ptr %buffers, ptr %buffers_at
  atomicrmw xchg ptr %finished, i64 0 seq_cst
  atomicrmw xchg ptr %next, i64 0 seq_cst
  atomicrmw add ptr %generation_at, i64 1 seq_cst
  %lines = getelementptr i64, ptr %control, i64 {LINES}
  br label %each
each:
  %thread = phi i64 [ 0, %write ], [ %thread.1, %wake ]
  %count = phi i64 [ 0, %write ], [ %count.1, %wake ]
  %all = icmp uge i64 %thread, %threads
  br i1 %all, label %end, label %wake
wake:
  %offset = shl i64 %thread, 3
  %line = getelementptr i64, ptr %lines, i64 %offset
  %woken = getelementptr i64, ptr %line, i64 1
  %waits = atomicrmw xchg ptr %line, i64 0 seq_cst
  store i64 %waits, ptr %woken
  %count.1 = add i64 %count, %waits
  %thread.1 = add i64 %thread, 1
  br label %each
end:
  %result = phi i64 [ %count, %each ], [ -1, %wait ]
  ret i64 %result
}}

; whether all parts are done, after looking for a while
define i64 @done(ptr %control, i64 %looks) {{
start:
  %finished_at = getelementptr i64, ptr %control, i64 {FINISHED}
  %parts_at = getelementptr i64, ptr %control, i64 {PARTS}
  %parts = load i64, ptr %parts_at
  br label %look
look:
  %turn = phi i64 [ 0, %start ], [ %turn.1, %again ]
  %finished = load atomic i64, ptr %finished_at seq_cst, align 8
  %all = icmp eq i64 %finished, %parts
  br i1 %all, label %end, label %wait
wait:
  %long = icmp uge i64 %turn, %looks
  br i1 %long, label %end, label %again
again:
  {pause}
  %turn.1 = add i64 %turn, 1
  br label %look
end:
  %result = phi i64 [ 1, %look ], [ 0, %wait ]
  ret i64 %result
}}

; says that the launching thread waits for a lock; 0 where all parts are done by now and nobody will release it
define i64 @sleep(ptr %control) {{
start:
  %finished_at = getelementptr i64, ptr %control, i64 {FINISHED}
  %sleeps_at = getelementptr i64, ptr %control, i64 {SLEEPS}
  %parts_at = getelementptr i64, ptr %control, i64 {PARTS}
  %parts = load i64, ptr %parts_at
  atomicrmw xchg ptr %sleeps_at, i64 1 seq_cst
  %finished = load atomic i64, ptr %finished_at seq_cst, align 8
  %all = icmp eq i64 %finished, %parts
  br i1 %all, label %withdraw, label %end
withdraw:
  %was = atomicrmw xchg ptr %sleeps_at, i64 0 seq_cst
  %released = sub i64 1, %was
  br label %end
end:
  %result = phi i64 [ 1, %start ], [ %released, %withdraw ]
  ret i64 %result
}}

; nobody takes any more parts
define void @close(ptr %control) {{
  %next = getelementptr i64, ptr %control, i64 {NEXT}
  atomicrmw xchg ptr %next, i64 {CLOSED} seq_cst
  ret void
}}
"""


@lru_cache(maxsize=1)
def _functions() -> dict[str, Any]:
    x86 = objects.is_x86()
    text = _SOURCE.format(
        GENERATION=GENERATION,
        NEXT=NEXT,
        FINISHED=FINISHED,
        SLEEPS=SLEEPS,
        ACTIVE=ACTIVE,
        PARTS=PARTS,
        LINES=LINES,
        CLOSED=CLOSED,
        LOOKS=LOOKS,
        pause="call void @llvm.x86.sse2.pause()" if x86 else "",
        pause_declaration="declare void @llvm.x86.sse2.pause()" if x86 else "",
    )
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    kinds: dict[str, tuple[Any, ...]] = {
        "take": (number, pointer, pointer, number),
        "serve": (number, pointer, pointer, number),
        "post": (number, pointer, number, pointer, pointer, pointer, number),
        "done": (number, pointer, number),
        "sleep": (number, pointer),
        "close": (None, pointer),
    }
    found = objects.compile_ir(text, kinds, objects.PLAIN)
    return {name: ctypes.CFUNCTYPE(*kind)(found[name]) for name, kind in kinds.items()}


@lru_cache(maxsize=1)
def _turn() -> float:
    """Seconds of one turn of looking, which are 10 to 50 nanoseconds: the pause of processors differs that much."""
    control: NDArray[np.int64] = np.zeros(LINES, np.int64)
    control[PARTS], looks, address = 1, _functions()["done"], objects.address(control)
    measured = []
    for _ in range(5):
        start = time.perf_counter()
        looks(address, LOOKS)
        measured.append(time.perf_counter() - start)
    return min(measured) / LOOKS


class Memory:
    """Memory that grows when more is asked for and is not given back: fresh pages cost more than many kernels."""

    def __init__(self) -> None:
        self._held: Any = None
        self._size = self._start = 0

    def address(self, size: int) -> int:
        """The address of at least ``size`` bytes, the same ones until it is asked for more; 0 for none."""
        if size > self._size:
            self._grow(size)
        return self._start if size else 0

    def _grow(self, size: int) -> None:
        alignment = ALIGNMENT
        if size >= HUGE_FROM and hasattr(mmap, "MADV_HUGEPAGE"):
            size, alignment = -(-size // HUGE) * HUGE, HUGE
            self._held = mmap.mmap(-1, size + HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            self._held.madvise(mmap.MADV_HUGEPAGE)
            start = ctypes.addressof(ctypes.c_char.from_buffer(self._held))
        else:
            self._held = np.empty(size + ALIGNMENT, np.uint8)
            start = objects.address(self._held)
        self._size, self._start = size, start + -start % alignment


class Pool:
    """``count`` threads, which look for ``seconds`` for the next launch before they wait, as does the launching one for
    the end of its launch. RuntimeError where the system has no more threads."""

    def __init__(self, count: int, seconds: float) -> None:
        self.lock = threading.Lock()
        """Held by whoever launches."""
        self.shared = Memory()
        self.threads: list[threading.Thread] = []
        self.is_closed = False
        self._functions = _functions()
        self._control: NDArray[np.int64] = np.zeros(LINES + 8 * count + 8, np.int64)
        start = objects.address(self._control)
        skipped = -start % 64 // 8
        self._words = self._control[skipped:]
        self._words[NEXT] = CLOSED
        self._address = start + 8 * skipped
        self._looks = int(seconds / _turn())
        self._memories = [Memory() for _ in range(count)]
        self._locks = [threading.Lock() for _ in range(count)]
        self._done = threading.Lock()
        self._done.acquire()
        self._held: list[object] = []
        for number, lock in enumerate(self._locks):
            lock.acquire()
            self._words[LINES + 8 * number] = 1
            self.threads.append(threading.Thread(target=self._serve, args=(number,), name="tlir", daemon=True))
            self.threads[-1].start()

    def _serve(self, number: int) -> None:
        line = self._address + 8 * (LINES + 8 * number)
        while True:
            self._locks[number].acquire()
            if self.is_closed:
                return
            while self._functions["serve"](self._address, line, self._looks):
                self._done.release()

    def launch(
        self, entry: int, parts: Any, buffers: Any, scratch: int, mine: int | None, at_once: int, held: object
    ) -> None:
        """Runs all parts (an array of int64, five for each) and returns when they are done. The calling thread takes
        parts with the scratch memory ``mine``, ``at_once`` before it looks whether it is interrupted, or none where
        that is None. If it is interrupted, the pool is of no more use, and keeps ``held`` alive."""
        functions, address = self._functions, self._address
        count = len(parts) // 5
        helpers = min(len(self.threads), count - (mine is not None))
        # a thread that still looks for work takes parts even if it would not be woken
        for number, memory in enumerate(self._memories):
            self._words[LINES + 8 * number + 2] = memory.address(scratch)
        self._words[MINE] = mine or 0
        description = (count, ctypes.addressof(parts), entry, ctypes.addressof(buffers), helpers)
        try:
            while (woken := functions["post"](address, *description)) < 0:
                time.sleep(0)
            if woken:
                for number in range(helpers):
                    if self._words[LINES + 8 * number + 1]:
                        self._locks[number].release()
            if mine is not None:
                while not functions["take"](address, address + 8 * MINE, at_once):
                    pass
            looks = 0 if mine is None else self._looks
            if not functions["done"](address, looks) and functions["sleep"](address):
                while not self._done.acquire(timeout=INTERRUPTION):
                    pass
        except BaseException:
            functions["close"](address)
            self._held += [parts, buffers, held]
            self.is_closed = True
            for lock in self._locks:
                if lock.locked():
                    lock.release()
            raise
