"""The mutants of a source by rule, found with libclang, and its text with all of them in it."""
import hashlib, json, re, sys
from pathlib import Path

import clang.cindex as clang
from clang.cindex import CursorKind as K

OPERATORS = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal",
             "+": "plus", "-": "minus", "*": "times", "/": "over", "%": "modulo"}
OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "/", "/": "*",
         "%": "*"}
# Calls without which a program is slower or messages go another way; the sizes of work for one thread.
SKIPPED_CALLS = re.compile(r"^(reserve|shrink_to_fit|prefetch\w*|grain_for|_mm\w*|__builtin\w*|static_assert)$")
CONSTANT = {K.TEMPLATE_NON_TYPE_PARAMETER, K.STATIC_ASSERT, K.ENUM_CONSTANT_DECL, K.CASE_STMT}


class Source:
    """The mutants of a file as edits of its text: (key, line, what, text, [(offset, order, depth, text, replaced)])."""

    def __init__(self, path, name, flags):
        self.name, self.path, self.found = name, str(path), []
        self.bytes = path.read_bytes()
        unit = clang.Index.create().parse(self.path, flags, options=1)
        for problem in unit.diagnostics:
            if problem.severity == clang.Diagnostic.Fatal:  # nothing behind it is in the tree
                sys.exit(f"{name}: {problem.spelling}")
            if problem.severity >= clang.Diagnostic.Error and problem.location.file and \
                    problem.location.file.name == self.path:
                print(f"{name}:{problem.location.line}: {problem.spelling}", file=sys.stderr)
        self.macros = []
        tops = []
        for node in unit.cursor.get_children():
            if not node.location.file or node.location.file.name != self.path:
                continue
            if node.kind == K.MACRO_INSTANTIATION:
                self.macros.append((node.extent.start.offset, node.extent.end.offset))
            elif not node.kind.is_preprocessing():
                tops.append(node)
        for node in tops:
            self.visit(node, [])

    def text(self, begin, end):
        return self.bytes[begin:end].decode(errors="replace")

    def add(self, node, what, before, after, replaced=()):
        """One mutant: text before and after [begin, end) and (offset, length, text) in between; # is its number."""
        begin, end = node.extent.start.offset, node.extent.end.offset
        if any(a < end and begin < b for a, b in self.macros) or begin >= end or \
                node.extent.start.file.name != self.path or node.extent.end.file.name != self.path:
            return
        first, last = node.extent.start, node.extent.end
        depth = end - begin
        self.found.append((f"{self.name}:{first.line}:{first.column}-{last.line}:{last.column}: {what}", first.line, what,
                           " ".join(self.text(begin, end).split())[:90],
                           [(begin, 1, -depth, before, 0), (end, 0, depth, after, 0),
                            *((offset, 2, 0, text, length) for offset, length, text in replaced)]))

    def visit(self, node, parents):
        kind = node.kind
        if kind in CONSTANT:
            for child in list(node.get_children())[1:] if kind == K.CASE_STMT else []:
                self.visit(child, parents + [node])
            return
        if kind.is_declaration() and kind not in (K.FUNCTION_DECL, K.CXX_METHOD, K.FUNCTION_TEMPLATE) and re.match(
                r"(template <[^;]*>\s*)?(static |inline )*(constexpr|constinit)\b",
                self.text(node.extent.start.offset, node.extent.end.offset)):
            return
        children = list(node.get_children())
        parent = parents[-1].kind if parents else None
        if kind == K.CALL_EXPR and SKIPPED_CALLS.match(node.spelling or ""):
            return
        if kind == K.BINARY_OPERATOR and len(children) == 2:
            self.binary(node, *children)
        elif kind == K.COMPOUND_ASSIGNMENT_OPERATOR and len(children) == 2:
            gap = self.text(children[0].extent.end.offset, children[1].extent.start.offset)
            if gap.strip() in ("+=", "-="):
                self.add(children[1], {"+=": "-=", "-=": "+="}[gap.strip()], "::mutants::negative(#, ", ")")
        elif kind in (K.INTEGER_LITERAL, K.FLOATING_LITERAL, K.CXX_BOOL_LITERAL_EXPR):
            shown = self.text(node.extent.start.offset, node.extent.end.offset)
            if not re.match(r"[.\d]|true$|false$", shown):  # the 0 that a < b is compared with where <=> is meant
                return
            before = self.text(max(0, node.extent.start.offset - 12), node.extent.start.offset)
            after = self.text(node.extent.end.offset, node.extent.end.offset + 1)
            if parent not in (K.TYPE_REF, K.FIELD_DECL, K.DECL_REF_EXPR, K.MEMBER_REF_EXPR) and not re.search(
                    r"[<\[]\s*$" if after in ">]" and parent == K.VAR_DECL else r"\w<\s*$", before):
                self.add(node, "another value", "::mutants::literal(#, ", ")")
        elif kind in (K.IF_STMT, K.WHILE_STMT, K.CONDITIONAL_OPERATOR) and children:
            head = self.text(node.extent.start.offset, children[0].extent.start.offset)
            first = children[0]
            if "constexpr" not in head and ";" not in head and first.kind not in (
                    K.DECL_STMT, K.VAR_DECL, K.BINARY_OPERATOR) and not (
                    kind == K.WHILE_STMT and first.kind == K.CXX_BOOL_LITERAL_EXPR):
                self.add(first, "the opposite", "(::mutants::on(#) != static_cast<bool>(", "))")
        elif kind == K.CALL_EXPR and parent == K.COMPOUND_STMT or (
                kind == K.UNEXPOSED_EXPR and parent == K.COMPOUND_STMT and len(children) == 1 and
                children[0].kind == K.CALL_EXPR):
            name = (node.spelling or (children[0].spelling if children else ""))
            if self.text(node.extent.end.offset, node.extent.end.offset + 1) == ";" and \
                    not SKIPPED_CALLS.match(name or "") and not any(map(self.never_returns, parents)):
                self.add(node, "without the call", "if (!::mutants::on(#)) ", "")
        for child in children:
            before = self.text(node.extent.start.offset, child.extent.start.offset)
            if kind not in (K.VAR_DECL, K.FIELD_DECL) or before.count("[") <= before.count("]"):  # the size of an array
                self.visit(child, parents + [node])

    def never_returns(self, node):
        return node.kind in (K.FUNCTION_DECL, K.CXX_METHOD) and "noreturn" in self.text(
            max(0, node.extent.start.offset - 20), node.extent.end.offset).split("{")[0]

    def binary(self, node, left, right):
        a, b = left.extent.end.offset, right.extent.start.offset
        gap = re.sub(r"//.*|/\*.*?\*/", lambda m: " " * len(m[0]), self.text(a, b))
        operator = gap.strip()
        if operator in OPERATORS:
            literal = (K.INTEGER_LITERAL, K.FLOATING_LITERAL)
            if left.kind in literal and right.kind in literal:
                return
            at = a + gap.index(operator)
            self.add(node, f"{operator} as {OTHER[operator]}", f"::mutants::{OPERATORS[operator]}(#, ", ")",
                     [(at, len(operator), ",")])
        elif operator == "&&":
            self.add(left, "&& without the left", "(::mutants::on(#) || (", "))")
            self.add(right, "&& without the right", "(::mutants::on(#) || (", "))")
        elif operator == "||":
            self.add(left, "|| without the left", "(!::mutants::on(#) && (", "))")
            self.add(right, "|| without the right", "(!::mutants::on(#) && (", "))")


def mutants_of(path, name, flags, cache):
    """Those of a file, read once for each text of it: the compiler's front end takes seconds."""
    digest = hashlib.sha1(path.read_bytes() + Path(__file__).read_bytes()).hexdigest()
    kept = cache / f"{digest}.json"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(Source(path, name, flags).found))
    return json.loads(kept.read_text())


def rewritten(text, chosen, header):
    """`text` with the edits of (number, edits), below an #include of `header`."""
    edits = [(*edit, number) for number, of_one in chosen for edit in of_one]
    out, at = [], 0
    for offset, _, _, new, length, number in sorted(edits, key=lambda e: e[:3]):
        out += [text[at:offset], new.replace("#", str(number)).encode()]
        at = offset + length
    return f'#include "{header}"\n#line 1\n'.encode() + b"".join(out) + text[at:]
