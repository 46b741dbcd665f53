"""A C header with which C and C++ call an exported library.

The library takes Python's objects in memory; the header's structures are laid out as their fields, with an empty head.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from relay.codegen.context import (
    BUDGET,
    DEPTH,
    FIRST_FAILURE,
    HEAD,
    MISFIT,
    RUNNING_OUT_OF_MEMORY,
    STACK_LIMIT,
    STATUS,
    TOO_DEEP,
    WORKSPACE,
)
from relay.codegen.layout import (
    DataLayout,
    Layout,
    Pool,
    RowLayout,
    SizedLayout,
    StackLayout,
    TensorLayout,
    TupleLayout,
    leaves,
)
from relay.codegen.native import ALIGNMENT, Native
from relay.ir.dims import ANY, TypeId, variables


class Unwritable(Exception):
    """Why machine code cannot be kept in a file, or has no header."""


_C_TYPES = {
    "bool": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "float16": "uint16_t",
    "bfloat16": "uint16_t", "float32": "float", "float64": "double",
}  # fmt: skip


def identifier(name: str) -> str:
    """A name as C takes it."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def symbol(name: str) -> str:
    """The symbol of the library's captured arrays, one after the other, each at a multiple of 64 bytes."""
    return f"_binary_{identifier(name)}_constants_start"


def header(native: Native, name: str) -> str:
    """The text of the header for a program."""
    name = identifier(name)
    inputs = [leaf for layout in native.parameters for leaf in leaves(layout)]
    outputs = list(leaves(native.result))
    sets = [f"  self->table[{HEAD}] = 0;", f"  self->table[{BUDGET}] = INT64_MAX;"]
    codes = {base.name: place for place, base in native.dtypes.items()}
    sets += [f"  self->table[{place}] = {place};" for place in codes.values()]
    offset = 0
    for place, array in native.constants.items():
        sets.append(f"  self->table[{place}] = (int64_t)(constants + {offset});")
        offset += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    messages = "".join(
        f"    case {FIRST_FAILURE + n}: return {_quoted(_text(m, s))};\n" for n, (m, s) in enumerate(native.failures)
    )
    frees = "".join(
        f"  free((void*)self->table[{place + 2 + leaf}]);\n" for place, count in native.pools for leaf in range(count)
    )
    made = list(_made(native.result, 0))
    cells: dict[Pool, int] = {}
    references = dict(_references(native.parameters, cells))
    tops = "".join(f"  self->table[{pool.slot}] = self->cells[{number}];\n" for pool, number in cells.items())
    makers = "".join(_maker(name, number, pool) for pool, number in cells.items())
    if native.arena is not None:
        frees += f"  {name}_free_arena(self->table[{native.arena + 2}]);\n"
    free_arena = _FREE_ARENA.replace("NAME", name) if native.arena is not None else ""
    readers = "".join(_reader(name, position, layout) for position, layout in made)
    ranks = ", ".join(str(len(leaf.dims)) for leaf in inputs) or "0"
    types = ", ".join(str(codes[leaf.base.name]) for leaf in inputs) or "0"
    load_constants = (
        f'  constants = (char*)dlsym(self->library, "{symbol(name)}");\n  if (!constants) return -1;\n'
        if native.constants
        else ""
    )
    return f"""/* How to call the function {name}, which Relay has compiled. Link with -ldl.

   inputs:
{_described(inputs, references={place: (cells[pool], name) for place, pool in references.items()})}
   outputs, whose memory the caller provides, row by row:
{_described(outputs, native.replaced, dict(made), name)}

   TVM's runtime (libtvm_ffi.so, libtvm_runtime.so) has to be loaded before {name}_open, with dlopen(.., RTLD_GLOBAL) or
   by linking with it. One {name}_t is for one call at a time. */
#ifndef RELAY_{name.upper()}_H
#define RELAY_{name.upper()}_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {{ const void* data; const int64_t* shape; }} {name}_array;

typedef struct {{
  void* library;
  void* block; /* of the workspace */
  int (*run)(void*, const void*, int32_t, void*);
  int64_t cells[{len(cells) + 1}]; /* how many references of each kind there are */
  int64_t table[{native.table_size}];
}} {name}_t;

/* 0, or -1 if the library cannot be loaded; dlerror() says why. */
static inline int {name}_open({name}_t* self, const char* library) {{
  char* constants = NULL;
  memset(self, 0, sizeof(*self));
  self->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!self->library) return -1;
  *(void**)&self->run = dlsym(self->library, "__tvm_ffi_main");
  if (!self->run) return -1;
{load_constants}  (void)constants;
  self->block = malloc({native.workspace} + 64);
  if (!self->block) return -1;
  self->table[{WORKSPACE}] = ((int64_t)self->block + 63) & -64;
{chr(10).join(sets)}
  return 0;
}}

/* 0, or the number of what went wrong, see {name}_message. */
static inline int {name}_run({name}_t* self, const {name}_array* inputs, void* const* outputs) {{
  typedef struct {{ const void* data; int64_t rank; const int64_t* shape; void* strides; void* base; int64_t dtype;
                   int32_t flags; }} array;
  typedef struct {{ int64_t size; void** items; }} list;
  typedef struct {{ int32_t kind, padding; int64_t value; }} any;
  static const int ranks[] = {{{ranks}}};
  static const int dtypes[] = {{{types}}};
  array arrays[{len(inputs) + len(outputs) + 1}];
  void* objects[{len(inputs) + len(outputs) + 1}];
  list lists[2];
  any arguments[3], result;
  int n;
  memset(arrays, 0, sizeof(arrays));
  for (n = 0; n < {len(inputs) + len(outputs)}; ++n) objects[n] = &arrays[n];
  for (n = 0; n < {len(inputs)}; ++n) {{
    arrays[n].data = inputs[n].data;
    arrays[n].rank = ranks[n];
    arrays[n].shape = inputs[n].shape;
    arrays[n].dtype = dtypes[n];
    arrays[n].flags = 0x101; /* row by row, aligned */
  }}
  for (n = 0; n < {len(outputs)}; ++n) arrays[{len(inputs)} + n].data = outputs[n];
  lists[0].size = {len(inputs)};
  lists[0].items = objects;
  lists[1].size = {len(outputs)};
  lists[1].items = objects + {len(inputs)};
  memset(arguments, 0, sizeof(arguments));
  memset(&result, 0, sizeof(result));
  for (n = 0; n < 3; ++n) arguments[n].kind = 1; /* kTVMFFIInt */
  arguments[0].value = (int64_t)self->table;
  arguments[1].value = (int64_t)&lists[0];
  arguments[2].value = (int64_t)&lists[1];
  self->table[{DEPTH}] = self->table[{STACK_LIMIT}] = 0;
{tops}  if (self->run(NULL, arguments, 3, &result)) return -1;
  return (int)self->table[{STATUS}];
}}

static inline const char* {name}_message(int status) {{
  switch (status) {{
    case 0: return "";
    case {RUNNING_OUT_OF_MEMORY}: return "there is not enough memory";
    case {TOO_DEEP}: return "recursion deeper than the stack allows";
    case {MISFIT}: return "an input has another shape than the program is for";
{messages}    default: return "the call failed";
  }}
}}

{readers}{makers}{free_arena}static inline void {name}_close({name}_t* self) {{
  if (!self->library) return;
{frees}  free(self->block);
  dlclose(self->library);
  memset(self, 0, sizeof(*self));
}}

#endif
"""


_FREE_ARENA = """\
static inline void NAME_free_arena(int64_t chunk) {
  while (chunk) {
    int64_t before = *(const int64_t*)chunk;
    free((void*)chunk);
    chunk = before;
  }
}

"""


def _made(layout: Layout, position: int) -> Iterator[tuple[int, SizedLayout]]:
    """The tensors in a result whose size the run makes, with the positions of their first words among the leaves.

    Raises Unwritable for lists, which lie in pools.
    """
    match layout:
        case SizedLayout():
            yield position, layout
        case TupleLayout(items):
            for item in items:
                yield from _made(item, position)
                position += sum(1 for _ in leaves(item))
        case StackLayout():
            raise Unwritable("it returns a list; a C header is for tensors and tuples of them")
        case RowLayout() | DataLayout():
            what = "a reference" if isinstance(layout, RowLayout) and layout.pool.cells else "data"
            raise Unwritable(f"it returns {what}; a C header is for tensors and tuples of them")
        case _:
            pass


def _references(parameters: Sequence[Layout], cells: dict[Pool, int]) -> Iterator[tuple[int, Pool]]:
    """The positions of references among the leaves of the arguments, and their pools, which get numbers in `cells`.

    Raises Unwritable for lists and data, and for references to anything but tensors of a known size.
    """
    position = 0
    pending = list(reversed(parameters))
    while pending:
        match pending.pop():
            case TupleLayout(items):
                pending += reversed(items)
            case RowLayout(pool) if pool.cells:
                _check_content(pool.element)
                cells.setdefault(pool, len(cells))
                yield position, pool
                position += 1
            case TensorLayout():
                position += 1
            case StackLayout():
                raise Unwritable("it takes a list; a C header is for tensors, tuples of them, and references to them")
            case _:
                raise Unwritable("it takes data; a C header is for tensors, tuples of them, and references to them")


def _check_content(layout: Layout) -> None:
    match layout:
        case TensorLayout():
            pass
        case TupleLayout(items) if not isinstance(layout, SizedLayout):
            for item in items:
                _check_content(item)
        case _:
            raise Unwritable("a reference holds something else than tensors of a known size, for which C has no header")


def _maker(name: str, number: int, pool: Pool) -> str:
    """The functions with which C makes references of a kind, and reads and writes what they hold."""
    sizes = [int(str(part.bytes)) for part in pool.leaves()]
    lines = "".join(
        f"    memory = realloc((void*)place[{2 + n}], (size_t)room * {max(size, 1)});\n"
        f"    if (!memory) return -1;\n    place[{2 + n}] = (int64_t)memory;\n"
        for n, size in enumerate(sizes)
    )
    clears = "".join(
        f"  memset((char*)place[{2 + n}] + made * {size}, 0, {size});\n" for n, size in enumerate(sizes) if size
    )
    return f"""\
/* References to {_content(pool)}.
   A new one, which holds zeros: what an input is; -1 if there is not enough memory. */
static inline int64_t {name}_cell{number}({name}_t* self) {{
  int64_t* place = self->table + {pool.slot};
  int64_t made = self->cells[{number}], room = made ? 2 * made : 4;
  if (made == place[1]) {{
    void* memory;
{lines}    (void)memory;
    place[1] = room;
  }}
{clears}  return self->cells[{number}]++;
}}

/* Where a part of what it holds is, until the next run or the next reference is made. */
static inline void* {name}_content{number}({name}_t* self, int64_t cell, int part) {{
  static const int64_t sizes[] = {{{", ".join(map(str, sizes)) or "0"}}};
  return (char*)self->table[{pool.slot} + 2 + part] + cell * sizes[part];
}}

"""


def _content(pool: Pool) -> str:
    """What references of a kind hold, part by part."""
    return "; ".join(f"{n}: {_type_text(leaf)}" for n, leaf in enumerate(leaves(pool.element))) or "nothing"


def _reader(name: str, position: int, layout: SizedLayout) -> str:
    """The structure and the function that C reads such a tensor with."""
    c_type = _C_TYPES[layout.base.name]
    words = itertools.count(position + 1)
    shape = ", ".join(f"*(const int64_t*)outputs[{next(words)}]" if d is ANY else str(d) for d in layout.dims)
    return f"""\
/* A tensor whose size the run makes. Its memory is that of {name}_t, until the next run. */
typedef struct {{ const {c_type}* data; int64_t shape[{len(layout.dims)}]; }} {name}_output{position};

static inline {name}_output{position} {name}_read{position}(void* const* outputs) {{
  {name}_output{position} found = {{ (const {c_type}*)*(const int64_t*)outputs[{position}], {{ {shape} }} }};
  return found;
}}

"""


def _text(message: str, span: object) -> str:
    return message if span is None else f"{span}: {message}"


def _quoted(text: str) -> str:
    escaped = text.encode("unicode_escape").decode().replace('"', '\\"')
    return f'"{escaped}"'


def _type_text(leaf: TensorLayout) -> str:
    shape = "".join(f"[{dim}]" for dim in leaf.dims)
    return f"{_C_TYPES[leaf.base.name]} {shape or '(one number)'}"


def _described(
    layouts: Sequence[TensorLayout],
    replaced: Mapping[int, int] | None = None,
    made: Mapping[int, SizedLayout] | None = None,
    name: str = "",
    references: Mapping[int, tuple[int, str]] | None = None,
) -> str:
    lines = []
    words = 0  # of a tensor that has been described
    for number, leaf in enumerate(layouts):
        if made and number in made:
            layout = made[number]
            words = 1 + layout.dims.count(ANY)
            shape = "".join("[any]" if dim is ANY else f"[{dim}]" for dim in layout.dims)
            lines.append(
                f"     {number} to {number + words - 1}: {_C_TYPES[layout.base.name]} {shape}, whose size the run"
                " makes:"
                f" an int64_t each, which {name}_read{number} reads"
            )
        words -= 1
        if words >= 0:
            continue
        if references and number in references:
            kind, of = references[number]
            lines.append(f"     {number}: int64_t, a reference that {of}_cell{kind} has made")
            continue
        names = sorted({v.name for dim in leaf.dims for v in variables(dim) if isinstance(v, TypeId)})
        note = f", for any {', '.join(names)} that the inputs agree in" if names else ""
        if replaced and number in replaced:
            note += f", in the memory of input {replaced[number]}, which is overwritten; give its pointer again"
        lines.append(f"     {number}: {_type_text(leaf)}{note}")
    return "\n".join(lines) or "     none"
