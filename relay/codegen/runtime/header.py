"""The C header with which C and C++ call an exported library.

The library takes Python's objects in memory; the header's structures are laid out as their fields, with an empty head.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from relay.codegen.lowering.context import (
    BUDGET,
    DEPTH,
    FIRST_FAILURE,
    GUARD_FAILURE,
    HEAD,
    RUNNING_OUT_OF_MEMORY,
    STACK_LIMIT,
    STATUS,
    TOO_DEEP,
    WORKSPACE,
)
from relay.codegen.lowering.layout import (
    DataLayout,
    Layout,
    Pool,
    RowLayout,
    SizedLayout,
    StackLayout,
    TensorLayout,
    TupleLayout,
    has_cells,
    has_fixed_rows,
    leaves,
)
from relay.codegen.runtime.native import ALIGNMENT, NativeModule
from relay.ir.dims import (
    ANY,
    Dim,
    DimExpr,
    TypeId,
    variables,
)
from relay.ir.sizes.polynomials import Extremum, Quotient
from relay.ir.types import DataDefinition


class ExportError(Exception):
    """The reason why machine code cannot be kept in a file, or has no header."""


C_TYPES = {
    "bool": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "float16": "uint16_t",
    "bfloat16": "uint16_t", "float32": "float", "float64": "double",
}  # fmt: skip
"""The types of elements in C, by dtype."""


def identifier(name: str) -> str:
    """A name as C takes it."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def symbol(name: str) -> str:
    """The symbol of the library's captured arrays, one after the other, each at a multiple of 64 bytes."""
    return f"_binary_{identifier(name)}_constants_start"


def entry_symbol(name: str) -> str:
    """The symbol of a function in a library that programs are linked with."""
    return f"relay_{identifier(name)}"


def constants_symbol(name: str) -> str:
    """The symbol of the function of such a library that tells where the captured arrays are."""
    return f"relay_constants_{identifier(name)}"


def header(native: NativeModule, name: str, linked: bool = False) -> str:
    """The text of the header for a program: one that `relay.load` reads, too, or one that others are `linked` with."""
    name = identifier(name)
    inputs = [leaf for layout in native.parameters for leaf in leaves(layout)]
    outputs = list(leaves(native.result))
    cells: dict[Pool, int] = {}
    input_parts = dict(_input_parts(native.parameters, cells))
    pools = dict(cells)
    output_parts = dict(_output_parts(native.result, 0, pools))
    received = {p: _received_text(name, p, layout, cells) for p, layout in input_parts.items()}
    returned = {p: _returned_text(name, p, layout, pools) for p, layout in output_parts.items()}
    makers = [_maker(name, number, pool) for pool, number in cells.items() if not pool.blocks]
    makers += [_list_maker(name, number, pool, cells) for pool, number in cells.items() if pool.blocks]
    makers += [_content_of(name, number, pool, pools) for pool, number in pools.items()]
    readers = [_reader(name, p, layout) for p, layout in output_parts.items() if isinstance(layout, SizedLayout)]
    shapes = [_shape_text(native, name, p, leaf) for p, leaf in enumerate(outputs) if _is_symbolic(leaf)]
    labels = dict(_labels(native.parameters)), dict(_labels([native.result]))
    loading = "Link with the library." if linked else _LOADING.format(name=name)
    return f"""/* How to call the function {name}, which Relay has compiled.{"" if linked else " Link with -ldl."}

   inputs:
{_describe_leaves(inputs, received, labels[0])}
   outputs, whose memory the caller provides, row by row:
{_describe_leaves(outputs, returned, labels[1], native.replaced)}

   {loading} One {name}_program is for one call at a time. */
#ifndef RELAY_{name}_H
#define RELAY_{name}_H

{"" if linked else "#include <dlfcn.h>" + chr(10)}#include <stdint.h>
#include <stdlib.h>
#include <string.h>

{_constructors(native, name)}typedef struct {{ const void* data; const int64_t* shape; }} {name}_array;

typedef struct {{
  void* library;
  void* block; /* of the workspace */
  int (*run)(void*, const void*, int32_t, void*);
  int64_t cells[{len(cells) + 1}]; /* how many references of each kind there are */
  int64_t table[{native.table_size}];
}} {name}_program;

{_linked_open_text(native, name) if linked else _open_text(native, name)}
{_run_text(native, name, inputs, len(outputs), cells)}
{_message_text(native, name)}
{"".join(shapes)}{"".join(readers)}{"".join(makers)}{_close_text(native, name, linked)}
#endif
"""


_LOADING = """\
TVM's runtime (libtvm_ffi.so, libtvm_runtime.so) has to be loaded before {name}_open, with dlopen(.., RTLD_GLOBAL) or
   by linking with it."""


def _table_text(native: NativeModule) -> str:
    """The statements that fill the table of a program."""
    sets = [f"  self->table[{HEAD}] = 0;", f"  self->table[{BUDGET}] = INT64_MAX;"]
    sets += [f"  self->table[{place}] = {place};" for place in native.dtypes]
    offset = 0
    for place, array in native.constants.items():
        sets.append(f"  self->table[{place}] = (int64_t)(constants + {offset});")
        offset += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    return f"""\
  self->block = malloc({native.workspace} + 64);
  if (!self->block) return -1;
  self->table[{WORKSPACE}] = ((int64_t)self->block + 63) & -64;
{chr(10).join(sets)}
  return 0;"""


def _linked_open_text(native: NativeModule, name: str) -> str:
    """The function that fills the table of a program which is part of the executable."""
    declared = f"const char* {constants_symbol(name)}(void);\n" if native.constants else ""
    found = f"  const char* constants = {constants_symbol(name)}();\n" if native.constants else ""
    return f"""\
#ifdef __cplusplus
extern "C" {{
#endif
{declared}int {entry_symbol(name)}(void*, const void*, int32_t, void*);
#ifdef __cplusplus
}}
#endif

/* 0, or -1 if there is not enough memory. */
static inline int {name}_open({name}_program* self) {{
{found}  memset(self, 0, sizeof(*self));
  self->run = {entry_symbol(name)};
{_table_text(native)}
}}
"""


def _open_text(native: NativeModule, name: str) -> str:
    """The function that loads the library and fills the table of a program."""
    load_constants = (
        f'  constants = (char*)dlsym(self->library, "{symbol(name)}");\n  if (!constants) return -1;\n'
        if native.constants
        else ""
    )
    return f"""/* 0, or -1 if the library cannot be loaded; dlerror() says why. */
static inline int {name}_open({name}_program* self, const char* library) {{
  char* constants = NULL;
  memset(self, 0, sizeof(*self));
  self->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!self->library) return -1;
  *(void**)&self->run = dlsym(self->library, "__tvm_ffi_main");
  if (!self->run) return -1;
{load_constants}  (void)constants;
{_table_text(native)}
}}
"""


def _run_text(
    native: NativeModule, name: str, inputs: Sequence[TensorLayout], outputs: int, cells: Mapping[Pool, int]
) -> str:
    """The function that calls the program, with this number of `outputs`."""
    codes = {base.name: place for place, base in native.dtypes.items()}
    ranks = ", ".join(str(len(leaf.dims)) for leaf in inputs) or "0"
    types = ", ".join(str(codes[leaf.base.name]) for leaf in inputs) or "0"
    tops = "".join(f"  self->table[{pool.slot}] = self->cells[{number}];\n" for pool, number in cells.items())
    arrays = len(inputs) + outputs
    return f"""/* 0, or the number of what went wrong, see {name}_message. */
static inline int {name}_run({name}_program* self, const {name}_array* inputs, void* const* outputs) {{
  typedef struct {{ const void* data; int64_t rank; const int64_t* shape; void* strides; void* base; int64_t dtype;
                   int32_t flags; }} array;
  typedef struct {{ int64_t size; void** items; }} list;
  typedef struct {{ int32_t kind, padding; int64_t value; }} any;
  static const int ranks[] = {{{ranks}}};
  static const int dtypes[] = {{{types}}};
  array arrays[{arrays + 1}];
  void* objects[{arrays + 1}];
  list lists[2];
  any arguments[3], result;
  int n;
  memset(arrays, 0, sizeof(arrays));
  for (n = 0; n < {arrays}; ++n) objects[n] = &arrays[n];
  for (n = 0; n < {len(inputs)}; ++n) {{
    arrays[n].data = inputs[n].data;
    arrays[n].rank = ranks[n];
    arrays[n].shape = inputs[n].shape;
    arrays[n].dtype = dtypes[n];
    arrays[n].flags = 0x101; /* row by row, aligned */
  }}
  for (n = 0; n < {outputs}; ++n) arrays[{len(inputs)} + n].data = outputs[n];
  lists[0].size = {len(inputs)};
  lists[0].items = objects;
  lists[1].size = {outputs};
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
"""


def _message_text(native: NativeModule, name: str) -> str:
    """The function that returns the message of a status."""
    messages = "".join(
        f"    case {FIRST_FAILURE + n}: return {_quote_string(_text(m, s))};\n"
        for n, (m, s) in enumerate(native.failures)
    )
    return f"""static inline const char* {name}_message(int status) {{
  switch (status) {{
    case 0: return "";
    case {RUNNING_OUT_OF_MEMORY}: return "there is not enough memory";
    case {TOO_DEEP}: return "recursion deeper than the stack allows";
    case {GUARD_FAILURE}: return "an input has another shape than the program is for";
{messages}    default: return "the call failed";
  }}
}}
"""


def _close_text(native: NativeModule, name: str, linked: bool) -> str:
    """The function that frees what a program has allocated."""
    frees = "".join(
        f"  free((void*)self->table[{place + 2 + leaf}]);\n" for place, count in native.pools for leaf in range(count)
    )
    free_arena = ""
    if native.arena is not None:
        frees += f"  {name}_free_arena(self->table[{native.arena + 2}]);\n"
        free_arena = _FREE_ARENA.replace("NAME", name)
    return f"""{free_arena}static inline void {name}_close({name}_program* self) {{
  if (!self->run) return;
{frees}  free(self->block);
{"" if linked else "  dlclose(self->library);" + chr(10)}  memset(self, 0, sizeof(*self));
}}
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


Found = tuple[int, "SizedLayout | RowLayout | StackLayout"]
"""The position of a part's first leaf, and the part."""


def _input_parts(parameters: Sequence[Layout], pools: dict[Pool, int]) -> Iterator[Found]:
    """The references, lists and recursive data among the arguments. Their pools, and those that these lead to, get
    numbers in `pools`.

    Raises ExportError for a tensor of unknown size in a pool.
    """
    position = 0
    for layout in parameters:
        for place, part in _parts(layout, position):
            if not isinstance(part, SizedLayout):
                _number(part.pool, pools, sized=False)
                yield place, part
        position += sum(1 for _ in leaves(layout))


def _output_parts(layout: Layout, position: int, pools: dict[Pool, int]) -> Iterator[Found]:
    """The tensors of data-dependent size, references and lists in a result, as `_given`."""
    for place, part in _parts(layout, position):
        if not isinstance(part, SizedLayout):
            _number(part.pool, pools, sized=True)
        yield place, part


def _parts(layout: Layout, position: int) -> Iterator[Found]:
    """The parts of a value other than tensors of known size, with the positions of their first leaves."""
    match layout:
        case SizedLayout() | StackLayout():
            yield position, layout
        case TupleLayout(items):
            for item in items:
                yield from _parts(item, position)
                position += sum(1 for _ in leaves(item))
        case DataLayout(_, fields):
            position += 1
            for field in itertools.chain(*fields):
                yield from _parts(field, position)
                position += sum(1 for _ in leaves(field))
        case RowLayout():
            yield position, layout
        case _:
            pass


def _number(pool: Pool, pools: dict[Pool, int], sized: bool) -> None:
    """Number a pool and those that its rows lead to."""
    if pool in pools:
        return
    if not has_fixed_rows(pool):
        raise ExportError("a reference, a list or recursive data holds tensors of symbolic size")
    pools[pool] = len(pools)
    for _, part in _parts(pool.element, 0):
        if not isinstance(part, SizedLayout):
            _number(part.pool, pools, sized)
        elif not sized:
            raise ExportError("a reference or a list holds tensors of data-dependent size")


def _received_text(name: str, position: int, layout: Layout, pools: Mapping[Pool, int]) -> tuple[int, str]:
    if isinstance(layout, StackLayout):
        text = f"int64_t each, a list that {name}_list{pools[layout.pool]} has made, and its length"
        return 2, f"     {position} and {position + 1}: {text}"
    assert isinstance(layout, RowLayout)
    return 1, f"     {position}: int64_t, {_row_text(layout)} that {name}_cell{pools[layout.pool]} has made"


def _returned_text(name: str, position: int, layout: Layout, pools: Mapping[Pool, int]) -> tuple[int, str]:
    match layout:
        case SizedLayout(_, base, dims):
            words = 1 + dims.count(ANY)
            shape = "".join("[any]" if dim is ANY else f"[{dim}]" for dim in dims)
            return words, (
                f"     {position} to {position + words - 1}: {C_TYPES[base.name]} {shape} of data-dependent size:"
                f" an int64_t each, which {name}_read{position} reads"
            )
        case StackLayout():
            number = pools[layout.pool]
            text = f"a list: where it begins, b, and its length; its elements are {name}_item{number}(.., b + i)"
            return 2, f"     {position} and {position + 1}: int64_t each, {text}"
        case _:
            assert isinstance(layout, RowLayout)
            return 1, f"     {position}: int64_t, {_row_text(layout)}, which {name}_content{pools[layout.pool]} reads"


def _row_text(layout: RowLayout) -> str:
    return "a reference" if layout.pool.cells else f"a value of {layout.pool.name}"


def _maker(name: str, number: int, pool: Pool) -> str:
    """The function with which C makes references of a kind."""
    sizes = [int(str(part.bytes)) for part in pool.leaves()]
    lines = _growth(sizes)
    clears = "".join(
        f"  memset((char*)place[{2 + n}] + made * {size}, 0, {size});\n" for n, size in enumerate(sizes) if size
    )
    return f"""\
/* {"References to" if pool.cells else f"Values of {pool.name}:"} {_content(pool)}.
   A new one, which holds zeros: what an input is; -1 if there is not enough memory. */
static inline int64_t {name}_cell{number}({name}_program* self) {{
  int64_t* place = self->table + {pool.slot};
  int64_t made = self->cells[{number}], room = made ? 2 * made : 4;
  if (made == place[1]) {{
    void* memory;
{lines}    (void)memory;
    place[1] = room;
  }}
{clears}  return self->cells[{number}]++;
}}

"""


def _list_maker(name: str, number: int, pool: Pool, pools: Mapping[Pool, int]) -> str:
    """The function with which C makes lists of a kind."""
    row, sizes = _element(pool), [int(str(part.bytes)) for part in pool.leaves()]
    fill = "".join(
        f"  memset((char*)place[{2 + n}] + made * {size}, 0, (size_t)count * {size});\n" for n, size in enumerate(sizes)
    )
    if has_cells(pool):
        fill = f"""\
  for (n = 0; n < count; ++n) {{
    int64_t cell = {name}_cell{pools[row]}(self);
    if (cell < 0) return -1;
    ((int64_t*)place[2])[made + n] = cell;
  }}
"""
    return f"""\
/* A new list of `count` elements, which are zeros: element i is the reference {name}_item{number}(.., list + i), to
   {_content(row)}. -1 if there is not enough memory. */
static inline int64_t {name}_list{number}({name}_program* self, int64_t count) {{
  int64_t* place = self->table + {pool.slot};
  int64_t made = self->cells[{number}]{", n" * has_cells(pool)};
  if (made + count > place[1]) {{
    void* memory;
    int64_t room = 2 * (made + count);
{_growth(sizes)}    place[1] = room;
  }}
{fill}  self->cells[{number}] += count;
  return made;
}}

"""


def _growth(sizes: Sequence[int]) -> str:
    """Room for more rows, whose parts have these sizes."""
    return "".join(
        f"    memory = realloc((void*)place[{2 + n}], (size_t)room * {max(size, 1)});\n"
        f"    if (!memory) return -1;\n    place[{2 + n}] = (int64_t)memory;\n"
        for n, size in enumerate(sizes)
    )


def _element(pool: Pool) -> Pool:
    """The pool that holds the elements of lists: that of the references that these are, or the lists' own."""
    return pool.element.pool if isinstance(pool.element, RowLayout) and has_cells(pool) else pool


def _content_of(name: str, number: int, pool: Pool, pools: Mapping[Pool, int]) -> str:
    """The functions with which C reads and writes what references of a kind hold, or finds the elements of lists."""
    items = f"""\
/* An element of a list: a reference, which {name}_content{pools[_element(pool)]} reads. */
static inline int64_t {name}_item{number}({name}_program* self, int64_t place) {{
  return {f"((const int64_t*)self->table[{pool.slot} + 2])[place]" if has_cells(pool) else "(void)self, place"};
}}

"""
    sizes = [int(str(part.bytes)) for part in pool.leaves()]
    contents = f"""\
/* Where a part of what a reference holds is, until the next run or the next reference is made: {_content(pool)}. */
static inline void* {name}_content{number}({name}_program* self, int64_t cell, int part) {{
  static const int64_t sizes[] = {{{", ".join(map(str, sizes)) or "0"}}};
  return (char*)self->table[{pool.slot} + 2 + part] + cell * sizes[part];
}}

"""
    if not pool.blocks:
        return contents
    return items if has_cells(pool) else items + contents


def _content(pool: Pool) -> str:
    """The content of references of a kind, part by part."""
    labels = dict(_labels([pool.element]))
    parts = (f"{n}: {_type_text(leaf)}{labels.get(n, '')}" for n, leaf in enumerate(leaves(pool.element)))
    return "; ".join(parts) or "nothing"


# ---- data types, and symbolic sizes


def _labels(layouts: Sequence[Layout], position: int = 0, label: str = "") -> Iterator[tuple[int, str]]:
    """The labels of data types' leaves, by position: constructors, and their fields."""
    for layout in layouts:
        match layout:
            case DataLayout(definition, fields):
                yield position, f"{label}, the constructor of {definition.name}"
                inner = position + 1
                for constructor, parts in zip(definition.constructors, fields, strict=True):
                    for number, part in enumerate(parts):
                        field = constructor.names[number] if constructor.names else number
                        yield from _labels([part], inner, f", {definition.name}.{constructor.name}.{field}")
                        inner += sum(1 for _ in leaves(part))
            case TupleLayout(items) if not isinstance(layout, SizedLayout):
                yield from _labels(items, position, label)
            case _ if label:
                yield position, label
            case _:
                pass
        position += sum(1 for _ in leaves(layout))


def _constructors(native: NativeModule, name: str) -> str:
    """The numbers of the constructors of all data types."""
    found: dict[DataDefinition, None] = {}
    seen: set[Pool] = set()
    pending: list[Layout] = [native.result, *reversed(native.parameters)]
    while pending:
        match pending.pop():
            case DataLayout(definition, fields):
                found[definition] = None
                pending += itertools.chain(*fields)
            case TupleLayout(items):
                pending += items
            case (RowLayout() | StackLayout()) as rows if rows.pool not in seen:
                seen.add(rows.pool)
                pending.append(rows.pool.element)
            case _:
                pass
    lines = []
    for definition in found:
        of = f"{name}_{identifier(definition.name)}"
        names = ", ".join(f"{of}_{identifier(c.name)}" for c in definition.constructors)
        lines.append(f"enum {{ {names} }}; /* constructors */\n")
    return "".join([*lines, "\n" * bool(lines)])


def _is_symbolic(leaf: TensorLayout) -> bool:
    return any(not isinstance(dim, int) and dim is not ANY for dim in leaf.dims)


def _shape_text(native: NativeModule, name: str, position: int, leaf: TensorLayout) -> str:
    """The function that tells how large an output of symbolic size is."""
    sets = "".join(f"  shape[{axis}] = {_dim_text(dim, native)};\n" for axis, dim in enumerate(leaf.dims))
    return f"""\
/* The shape of output {position} for these inputs: {_type_text(leaf)}. */
static inline void {name}_shape{position}(const {name}_array* inputs, int64_t* shape) {{
{sets}}}

"""


def _dim_text(dim: Dim | Quotient | Extremum, native: NativeModule) -> str:
    """A size as C computes it of the shapes of the inputs."""
    match dim:
        case int():
            return f"INT64_C({dim})"
        case TypeId():
            leaf, axis = native.shown[dim]
            return f"inputs[{leaf}].shape[{axis}]"
        case Quotient(dividend, divisor):
            a, b = _dim_text(dividend, native), _dim_text(divisor, native)
            return f"(({a}) / ({b}) - (({a}) % ({b}) < 0))"  # rounded down; divisors are positive
        case Extremum(largest, dims):
            first, *others = (_dim_text(d, native) for d in sorted(dims, key=str))
            for other in others:
                first = f"(({first}) {'>' if largest else '<'} ({other}) ? ({first}) : ({other}))"
            return first
        case DimExpr(terms):
            sums = []
            for monomial, coefficient in sorted(terms, key=str):
                factors = [
                    _dim_text(factor, native) for factor, power in sorted(monomial, key=str) for _ in range(power)
                ]
                sums.append(" * ".join([f"INT64_C({coefficient})", *factors]))
            return f"({' + '.join(sums) or '0'})"
        case _:
            raise ExportError(f"the size {dim} of a result cannot be told from the inputs")


def _reader(name: str, position: int, layout: SizedLayout) -> str:
    """The structure and the function that C reads such a tensor with."""
    c_type = C_TYPES[layout.base.name]
    words = itertools.count(position + 1)
    shape = ", ".join(f"*(const int64_t*)outputs[{next(words)}]" if d is ANY else str(d) for d in layout.dims)
    return f"""\
/* A tensor of data-dependent size. Its memory is that of {name}_program, until the next run. */
typedef struct {{ const {c_type}* data; int64_t shape[{len(layout.dims)}]; }} {name}_output{position};

static inline {name}_output{position} {name}_read{position}(void* const* outputs) {{
  {name}_output{position} found = {{ (const {c_type}*)*(const int64_t*)outputs[{position}], {{ {shape} }} }};
  return found;
}}

"""


def _text(message: str, span: object) -> str:
    return message if span is None else f"{span}: {message}"


def _quote_string(text: str) -> str:
    """A literal of C. Octal escapes end after three digits, those in base 16 wherever no such digit follows."""
    plain = (chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode())
    return f'"{"".join(plain)}"'


def _type_text(leaf: TensorLayout) -> str:
    shape = "".join(f"[{dim}]" for dim in leaf.dims)
    return f"{C_TYPES[leaf.base.name]} {shape or '(one number)'}"


def _describe_leaves(
    layouts: Sequence[TensorLayout],
    parts: Mapping[int, tuple[int, str]],
    labels: Mapping[int, str],
    replaced: Mapping[int, int] | None = None,
) -> str:
    """A line for each leaf. `parts` have lines of their own: how many leaves they are, by the first one's position."""
    lines = []
    words = 0  # of a part that has been described
    for number, leaf in enumerate(layouts):
        if number in parts:
            words, line = parts[number]
            lines.append(line + labels.get(number, ""))
        words -= 1
        if words >= 0:
            continue
        names = sorted({v.name for dim in leaf.dims for v in variables(dim) if isinstance(v, TypeId)})
        note = labels.get(number, "")
        note += f", for any {', '.join(names)} that the inputs agree in" if names else ""
        if replaced and number in replaced:
            note += f", in the memory of input {replaced[number]}, which is overwritten; give its pointer again"
        lines.append(f"     {number}: {_type_text(leaf)}{note}")
    return "\n".join(lines) or "     none"
