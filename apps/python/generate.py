#!/usr/bin/env python3
"""Bindings of the ops from the library's own headers: one declaration gives the C++ function, its Python function, its
docstring and its type stub.

usage: generate.py INCLUDE_DIR OUT_DIR

Reads the headers that <braid/autograd.h> includes and writes C++ files that bind the free functions of namespace braid
which take and give tensors, numbers, shapes and options, and the stubs of the same functions. Options structs become
keyword arguments. What cannot be bound by this rule stands in SKIPPED, with the reason; a parameter of a type without
a rule is an error, so that no op is forgotten.
"""
import re
import sys
from dataclasses import dataclass, field

# Bound by hand in module.cpp, or of no use in Python.
SKIPPED = {
    "at": "Tensor.__getitem__ and item()",
    "tap": "takes a function: bound by hand",
    "record": "custom_op(), bound by hand", "record_many": "custom_op(), bound by hand",
    "recording": "bound by hand", "no_gradient": "for ops in C++", "no_grad": "a context manager, bound by hand",
    "require_grad": "Tensor.requires_grad_", "requires_grad": "Tensor.requires_grad",
    "grad": "bound by hand", "set_grad": "Tensor.grad", "zero_grad": "Tensor.grad", "backward": "Tensor.backward",
    "on_grad": "Tensor.register_hook", "recompute": "takes a function: bound by hand",
    "vjp": "takes a function", "value_and_grad": "takes a function", "jvp": "takes a function",
    "hvp": "takes a function", "jacobian": "takes a function", "hessian": "takes a function",
    "gradcheck": "takes a function: bound by hand", "gradgradcheck": "takes a function: bound by hand",
    "tensor": "bound by hand: nested lists", "arange": "bound by hand: integers or numbers",
}


@dataclass
class Parameter:
    type: str
    name: str
    default: str | None = None


@dataclass
class Function:
    name: str
    result: str
    parameters: list
    doc: str = ""


@dataclass
class Struct:
    name: str
    fields: list = field(default_factory=list)
    doc: str = ""


def split_top(text, separator=","):
    """Splits at separators outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "(<{["
        depth -= c in ")>}]"
        if c == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in parts + [text[start:]] if part.strip()]


def statements(text):
    """(declaration, comment above, comment behind it) of namespace braid, in order; bodies are left out."""
    above, code, behind, depth, body = [], "", [], 0, 0
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("#"):
            continue
        match = re.match(r'((?:[^"/]|"[^"]*"|/(?!/))*)(?://(.*))?$', line)
        source, comment = match.group(1), match.group(2)
        if not source.strip():
            if comment is None:
                if not code.strip():
                    above = []
            elif not code.strip():
                above.append(comment.strip())
            continue
        for c in source:
            if depth == 1 and body == 0 and c == ";":
                yield code.strip(), above, behind + ([comment.strip()] if comment else [])
                above, code, behind = [], "", []
            elif c == "{":
                if depth == 0:
                    depth, code, above = 1, "", []
                elif body or not re.search(r"[=,(]\s*$", code):
                    body += 1
                    code += c
                else:
                    code += c
            elif c == "}":
                code += c
                if body:
                    body -= 1
                    if body == 0 and not re.match(r"\s*(struct|enum|class)\b", code):
                        yield re.sub(r"\{.*\}$", "", code, flags=re.S).strip(), above, behind
                        above, code, behind = [], "", []
                elif code.strip() == "}":
                    depth, code = 0, ""
            else:
                code += c
        code += "\n"
        if body and comment and "struct" in code:
            code += "//" + comment + "\n"
        elif comment and code.strip():
            behind.append(comment.strip())


# How a parameter of a C++ type is taken, and its type in Python.
SIMPLE = {
    "int": ("int", "int"), "int64_t": ("int64_t", "int"), "double": ("double", "float"), "bool": ("bool", "bool"),
    "const std::string&": ("const std::string&", "str"),
    "const std::vector<Tensor>&": ("const std::vector<Tensor>&", "Sequence[Tensor]"),
    "const std::vector<int64_t>&": ("const std::vector<int64_t>&", "Sequence[int]"),
    "const std::vector<double>&": ("const std::vector<double>&", "Sequence[float]"),
    "const std::vector<Index>&": ("const Indices&", "Any"),
    "const std::vector<AxisPadding>&": ("const std::vector<AxisPadding>&", "Sequence[AxisPadding]"),
    "std::vector<Document>": ("const std::vector<Document>&", "Sequence[Document]"),
    "Axes": ("const AxisList&", "int | Sequence[int]"),
    "const Shape&": ("const Shape&", "int | Sequence[int]"),
    "const Pixels&": ("const Pixels&", "int | Sequence[int]"),
    "Pixels": ("const Pixels&", "int | Sequence[int]"),
    "DType": ("DType", "DType"), "Device": ("Device", "str"), "RandomKey": ("RandomKey", "RandomKey | int"),
    "AttentionMask": ("const AttentionMask&", "AttentionMask"),
    "const AttentionMask&": ("const AttentionMask&", "AttentionMask"),
    "std::vector<int64_t>": ("const std::vector<int64_t>&", "Sequence[int]"),
    "std::optional<RandomKey>": ("std::optional<RandomKey>", "RandomKey | int | None"),
    "std::optional<double>": ("std::optional<double>", "float | None"),
}
RESULTS = {"Tensor": "Tensor", "std::vector<Tensor>": "list[Tensor]", "bool": "bool", "double": "float"}
CLASSES = ("HeadMixing", "QkvSplit", "ComposeFactors", "AttentionMask", "AxisPadding", "Document", "TruncatedNormal")


def without_methods(body):
    """The members of a struct without its functions."""
    while match := re.search(r"[^;{}]*\([^;{}=]*\)\s*(const)?\s*\{", body):
        end, depth = match.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(body[end], 0)
            end += 1
        body = body[:match.start()] + body[end:]
    return body


class Api:
    """What the headers declare: functions, structs by name, values of enums by name."""

    def __init__(self):
        self.functions, self.structs, self.enums = [], {}, {}

    def read(self, path, functions=True):
        for code, above, behind in statements(open(path).read()):
            if code.startswith("struct "):
                self.add_struct(code, above)
            elif code.startswith("enum "):
                name, values = re.match(r"enum class (\w+)[^{]*\{(.*)\}", re.sub(r"//[^\n]*", "", code), re.S).groups()
                self.enums[name] = [value.strip() for value in values.split(",") if value.strip()]
            elif functions:
                doc = [line for line in above if not line.startswith("--- ")]
                self.add_function(" ".join(code.split()), " ".join(doc + behind))

    def add_struct(self, code, above):
        name, base, body = re.match(r"struct (\w+)(?:\s*:\s*(\w+))?\s*\{(.*)\}", code, re.S).groups()
        body = without_methods(re.sub(r"//[^\n]*", "", body))
        fields = list(self.structs[base].fields) if base else []
        for line in split_top(body, ";"):
            match = re.match(r"((?:std::)?[\w:]+(?:<[^;]*?>)?)\s+(.*)$", line, re.S)
            if not match or "(" in line.split("=")[0] or line.startswith("enum") or "*" in line:
                continue
            for part in split_top(match.group(2)):
                of = re.match(r"(\w+)\s*(?:=\s*(.*))?$", part, re.S)
                fields.append(Parameter(match.group(1), of.group(1), of.group(2)))
        self.structs[name] = Struct(name, fields, " ".join(above))

    def add_function(self, code, doc):
        match = re.match(r"([\w:<>,& ]+?[&\s])(\w+)\((.*)\)$", code)
        if not match or re.match(r"(inline|template|using|namespace|class|struct)\b", code) or "operator" in code:
            return
        parameters = []
        for part in split_top(match.group(3)):
            of = re.match(r"(.*?)\s*(\w+)(?: = (.*))?$", part)
            parameters.append(Parameter(of.group(1), of.group(2), of.group(3)))
        self.functions.append(Function(match.group(2), match.group(1).strip(), parameters, doc))


def python_default(text):
    """The default of a parameter, as Python writes it."""
    if text is None:
        return None
    simple = {"{}": "None", "true": "True", "false": "False", "kCpu": "'cpu'", "Reduction::mean": "'mean'"}
    if text in simple:
        return simple[text]
    if match := re.match(r"DType::(\w+)$", text):
        return match.group(1)
    if match := re.match(r"(\w+)::(\w+)$", text):
        return repr(match.group(2))
    if match := re.match(r"\{(.*)\}$", text):
        return "(" + match.group(1) + ")"
    return text


class Writer:
    def __init__(self, api):
        self.api, self.cpp, self.pyi = api, [], []

    def taken(self, function, parameter):
        """(C++ parameters, the argument of the call, Python parameters) of one parameter of an op."""
        type, name, default = parameter.type, parameter.name, parameter.default
        bare = re.sub(r"const |&", "", type)
        if bare.endswith("Options"):
            cpp, python, fields = [], [], []
            for member in self.api.structs[bare].fields:
                one_cpp, argument, one_python = self.taken(function, Parameter(member.type, member.name, member.default or "{}"))
                cpp += one_cpp
                python += one_python
                fields.append(f"options.{member.name} = {argument};")
            return cpp, f"[&] {{ {bare} options; {' '.join(fields)} return options; }}()", python
        if bare in self.api.enums:
            value = python_default(default)
            choices = ", ".join(repr(v) for v in self.api.enums[bare])
            return ([(f"{bare}", name, f"{default}" if default else None)], name,
                    [(name, f"Literal[{choices}]", value)])
        if bare == "Tensor":
            optional = default == "{}" or re.search(rf"\b{name}\b( \([^)]*\))?(, \w+)?( \([^)]*\))?,? (which )?(or|may be) (an )?empty handle",
                                                    function.doc)
            if optional:
                return ([("const std::optional<Tensor>&", name, "nb::none()" if default else None)],
                        f"{name}.value_or(Tensor())", [(name, "Tensor | None", "None" if default else None)])
            return [("const Tensor&", name, None)], name, [(name, "Tensor", None)]
        if bare in CLASSES:
            default_cpp = f"{bare}{{}}" if default == "{}" else default
            return ([(f"const {bare}&", name, default_cpp)], name, [(name, bare, "..." if default else None)])
        if type not in SIMPLE:
            raise SystemExit(f"generate.py: {function.name}() takes a {type}, which has no row in SIMPLE")
        cpp, python = SIMPLE[type]
        if default and re.match(r"\{.+\}$", default):
            default_cpp = bare + default
        elif default == "{}":
            default_cpp = "nb::none()" if "optional" in type else bare + "{}"
        else:
            default_cpp = default
        argument = {"Axes": f"Axes({name}.axes)", "const std::vector<Index>&": f"{name}.list"}.get(type, name)
        return [(cpp, name, default_cpp)], argument, [(name, python, python_default(default))]

    def op(self, function):
        cpp, arguments, python = [], [], []
        for parameter in function.parameters:
            one_cpp, argument, one_python = self.taken(function, parameter)
            cpp += one_cpp
            arguments.append(argument)
            python += one_python
        parameters = ", ".join(f"{type} {name}" for type, name, _ in cpp)
        args = "".join(f', "{name}"_a' + (f" = {default}" if default else "") for _, name, default in cpp)
        self.cpp.append(f'  m.def("{function.name}", []({parameters}) {{ return {function.name}({", ".join(arguments)}); }}'
                        f'{args}, nb::call_guard<Unlocked>(), {quoted(function.doc)});')
        return python

    def stub(self, functions):
        for function in functions:
            python = self.op(function)
            parts = [f"{name}: {type}" + (f" = {default}" if default is not None else "")
                     for name, type, default in python]
            result = RESULTS.get(function.result, re.sub(r"std::vector<(\w+)>", r"list[\1]", function.result))
            if len(functions) > 1:
                self.pyi.append("@overload")
            self.pyi.append(f"def {function.name}({', '.join(parts)}) -> {result}:")
            self.pyi.append(f'    """{function.doc}"""' if function.doc else "    ...")


    def names(self):
        """Specialisations of Names for every enum."""
        lines = []
        for name, values in self.api.enums.items():
            rows = ", ".join(f'{{"{value}", {value}}}' for value in values)
            lines.append(f"template <>\nstruct braid::python::Names<braid::{name}> {{\n  using enum braid::{name};\n"
                         f"  static constexpr std::pair<std::string_view, braid::{name}> values[] = {{{rows}}};\n}};\n"
                         f"template <>\nstruct nanobind::detail::type_caster<braid::{name}> : EnumCaster<braid::{name}> {{}};")
        return "\n".join(lines)

    def python_type(self, type):
        if type == "Tensor":
            return "Tensor | None"
        return SIMPLE[type][1] if type in SIMPLE else RESULTS.get(type, "Any")

    def struct(self, struct):
        """A class that is made by keywords; tensors may be None."""
        name, cpp, stub = struct.name, [f'  nb::class_<{struct.name}>(m, "{struct.name}", {quoted(struct.doc)})'], []
        parameters, sets, args = [], [], ""
        for member in struct.fields:
            if member.type == "Tensor":
                parameters.append(f"const std::optional<Tensor>& {member.name}")
                sets.append(f"self->{member.name} = {member.name}.value_or(Tensor());")
                args += f', "{member.name}"_a = nb::none()'
                cpp.append(f'      .def_prop_rw("{member.name}", [](const {name}& s) {{ return handle_or_none(s.{member.name}); }}, '
                           f'[](const {name}& s, const std::optional<Tensor>& x) {{ const_cast<{name}&>(s).{member.name} = x.value_or(Tensor()); }}, "value"_a.none())')
            else:
                parameters.append(f"{member.type} {member.name}")
                sets.append(f"self->{member.name} = {member.name};")
                args += f', "{member.name}"_a' + (f" = {member.default}" if member.default else "")
                cpp.append(f'      .def_rw("{member.name}", &{name}::{member.name})')
            default = " = None" if member.type == "Tensor" else f" = {python_default(member.default)}" if member.default else ""
            stub.append((member.name, self.python_type(member.type), default))
        cpp.insert(1, f'      .def("__init__", []({name}* self, {", ".join(parameters)}) {{ new (self) {name}(); {" ".join(sets)} }}{args})')
        self.cpp.append("\n".join(cpp) + ";")
        self.pyi.append(f"class {name}:\n    def __init__(self, " + ", ".join(f"{n}: {t}{d}" for n, t, d in stub) + ") -> None: ...")
        self.pyi += [f"    {n}: {t}" for n, t, _ in stub]

    def result(self, struct):
        """A class of results, which unpacks in the order of its members."""
        name, members = struct.name, [member.name for member in struct.fields]
        cpp = [f'  nb::class_<{name}>(m, "{name}", {quoted(struct.doc)})']
        cpp += [f'      .def_ro("{member}", &{name}::{member})' for member in members]
        cpp.append(f'      .def("__len__", [](const {name}&) {{ return {len(members)}; }})')
        cpp.append(f'      .def("__iter__", [](const {name}& s) {{ return nb::iter(nb::make_tuple(' +
                   ", ".join(f"s.{member}" for member in members) + ")); })")
        self.cpp.append("\n".join(cpp) + ";")
        self.pyi.append(f"class {name}:")
        self.pyi += [f"    {member.name}: {RESULTS.get(member.type, 'Any')}" for member in struct.fields]
        self.pyi.append("    def __len__(self) -> int: ...\n    def __iter__(self) -> Iterator[Any]: ...")


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main():
    include, out = sys.argv[1:3]
    api = Api()
    api.read(f"{include}/braid/tensor/attention_operands.h", functions=False)
    for header in re.findall(r'#include "(braid/autograd/[^"]+)"', open(f"{include}/braid/autograd.h").read()):
        if not re.search(r"debug|graph_|closure", header):
            api.read(f"{include}/{header}")
    by_name, results = {}, []
    for function in api.functions:
        if function.name in SKIPPED:
            continue
        by_name.setdefault(function.name, []).append(function)
        result = re.sub(r"std::vector<(\w+)>", r"\1", function.result)
        if result in api.structs and result not in CLASSES and result not in results:
            results.append(result)
    structs = Writer(api)
    for name in CLASSES:
        structs.struct(api.structs[name])
    for name in results:
        structs.result(api.structs[name])
    ops = Writer(api)
    for name in by_name:
        ops.stub(by_name[name])
    made = "// Made by generate.py from the headers of autograd/.\n"
    frame = made + '#include "apps/python/bindings.h"\n\nnamespace braid::python {\n\n%s\n\n}  // namespace braid::python\n'
    parts = 4
    share = -(-len(ops.cpp) // parts)
    files = {"names.h": made + "#pragma once\n" + ops.names() + "\n",
             "structs.cpp": frame % ("void bind_structs(nb::module_& m) {\n" + "\n".join(structs.cpp) + "\n}"),
             "ops.pyi": "\n".join(structs.pyi + ops.pyi) + "\n"}
    for part in range(parts):
        files[f"ops_{part}.cpp"] = frame % (f"void bind_ops_{part}(nb::module_& m) {{\n" +
                                            "\n".join(ops.cpp[part * share:(part + 1) * share]) + "\n}")
    for name, text in files.items():
        with open(f"{out}/{name}", "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
