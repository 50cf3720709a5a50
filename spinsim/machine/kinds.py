"""Types of a call's arguments as a number, by which a compiled kernel finds its machine code in under a microsecond.

A call takes some twenty arrays, of which Python asks a microsecond each. The objects themselves are read instead, as
CPython and NumPy lay them out in memory::

    object   ... | type |                      header, of which the type is the last word
    tuple    header | length | ... | item 0 | item 1 | ...
    array    header | data | dimensions | shape | strides | base | element type | flags | ...
    element type    header | class | kind, letter, byte order, flags | number | ...

Where one of these places does not hold what Python says, the slower way serves.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import numpy as np

_FLAGS: Final = 0x1 | 0x2 | 0x100 | 0x400  # of arrays: in the order of C or of Fortran, aligned, writable
_IS_TUPLE: Final = 1 << 26  # among the flags of a class
_HEADER: Final = object.__basicsize__
_ITEMS: Final = tuple.__basicsize__
_CLASS_FLAGS: Final = _HEADER + 8 + 18 * 8
_DIMENSIONS, _ELEMENT, _ARRAY_FLAGS = _HEADER + 8, _HEADER + 40, _HEADER + 48
_ORDER, _NUMBER = _HEADER + 10, _HEADER + 12

_CODE: Final = f"""
define i64 @kind(i64 %value, i64 %arrays, i64 %seed) {{
begin:
  %type = LOAD(i64, %value, {_HEADER - 8})
  %is_array = icmp eq i64 %type, %arrays
  br i1 %is_array, label %array, label %other
array:
  %dimensions = LOAD(i32, %value, {_DIMENSIONS})
  %flags = LOAD(i32, %value, {_ARRAY_FLAGS})
  %element = LOAD(i64, %value, {_ELEMENT})
  %order = LOAD(i8, %element, {_ORDER})
  %number = LOAD(i32, %element, {_NUMBER})
  %some = and i32 %flags, {_FLAGS}
  %bits0 = zext i32 %dimensions to i64
  %bits1 = zext i32 %number to i64
  %bits2 = zext i32 %some to i64
  %bits3 = zext i8 %order to i64
  %up1 = shl i64 %bits1, 8
  %up2 = shl i64 %bits2, 40
  %up3 = shl i64 %bits3, 56
  %or1 = or i64 %bits0, %up1
  %or2 = or i64 %or1, %up2
  %of_array = or i64 %or2, %up3
  br label %mix
other:
  %class_flags = LOAD(i64, %type, {_CLASS_FLAGS})
  %masked = and i64 %class_flags, {_IS_TUPLE}
  %is_scalar = icmp eq i64 %masked, 0
  br i1 %is_scalar, label %mix, label %tuple
tuple:
  %length = LOAD(i64, %value, {_HEADER})
  %items = add i64 %value, {_ITEMS}
  br label %loop
loop:
  %k = phi i64 [ 0, %tuple ], [ %next, %work ]
  %held = phi i64 [ %seed, %tuple ], [ %now, %work ]
  %is_done = icmp eq i64 %k, %length
  br i1 %is_done, label %whole, label %work
work:
  %offset = shl i64 %k, 3
  %at = add i64 %items, %offset
  %item = LOAD(i64, %at, 0)
  %now = call i64 @kind(i64 %item, i64 %arrays, i64 %held)
  %next = add i64 %k, 1
  br label %loop
whole:
  %of_tuple = add i64 %length, 1
  br label %mix
mix:
  %found = phi i64 [ %of_array, %array ], [ %type, %other ], [ %of_tuple, %whole ]
  %before = phi i64 [ %seed, %array ], [ %seed, %other ], [ %held, %whole ]
  %both = xor i64 %found, %before
  %product = mul i64 %both, -7046029254386353131
  %high = lshr i64 %product, 29
  %mixed = xor i64 %product, %high
  ret i64 %mixed
}}
"""


def kind_of_arguments(llvm: Any) -> Callable[[tuple[Any, ...]], Any]:
    """Make the function that gives arguments of different types different numbers, by LLVM's binding."""
    if not _is_laid_out():
        return by_python
    target = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_code(llvm.llvm_version_info[0])), target)
    engine.finalize_object()
    function = ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.py_object, ctypes.c_uint64, ctypes.c_uint64)
    call, arrays = function(engine.get_function_address("kind")), id(np.ndarray)

    def kind(arguments: tuple[Any, ...], engine: Any = engine) -> Any:  # which owns the code
        return call(arguments, arrays, 0)

    return kind


def by_python(value: Any) -> Any:
    """Return a hashable that tells arguments of different types apart."""
    if type(value) is np.ndarray:
        return value.dtype, value.ndim, value.flags.num & _FLAGS
    return tuple(map(by_python, value)) if isinstance(value, tuple) else type(value)


def _code(version: int) -> str:
    """Write the loads of ``_CODE`` as LLVM's version has pointers."""
    lines = []
    for number, line in enumerate(_CODE.splitlines()):
        name, is_load, rest = line.partition(" = LOAD(")
        if is_load:
            kind, base, offset = rest.rstrip(")").split(", ")
            pointer = "ptr" if version >= 15 else f"{kind}*"
            lines.append(f"  %sum{number} = add i64 {base}, {offset}")
            lines.append(f"  %place{number} = inttoptr i64 %sum{number} to {pointer}")
            lines.append(f"{name} = load {kind}, {pointer} %place{number}")
        else:
            lines.append(line)
    return "\n".join(lines)


def _is_laid_out() -> bool:
    """Return True if arrays, element types, tuples and classes hold what they should at the places above."""
    word, number, letter = ctypes.c_uint64.from_address, ctypes.c_int32.from_address, ctypes.c_char.from_address
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    arrays = [np.zeros((2, 3), np.uint32), np.zeros((2, 3, 1), "<f8").T, np.zeros((4, 4), np.bool_)[::2, ::2]]
    pair = (arrays[0], 5)
    return all(
        word(id(array) + _HEADER - 8).value == id(np.ndarray)
        and number(id(array) + _DIMENSIONS).value == array.ndim
        and number(id(array) + _ARRAY_FLAGS).value & _FLAGS == array.flags.num & _FLAGS
        and word(id(array) + _ELEMENT).value == id(array.dtype)
        and number(id(array.dtype) + _NUMBER).value == array.dtype.num
        and letter(id(array.dtype) + _ORDER).value == array.dtype.byteorder.encode()
        for array in arrays
    ) and (
        word(id(pair) + _HEADER).value == 2
        and [word(id(pair) + _ITEMS + 8 * k).value for k in range(2)] == [id(pair[0]), id(pair[1])]
        and all(word(id(kind) + _CLASS_FLAGS).value == kind.__flags__ for kind in (tuple, int, np.ndarray))
    )
