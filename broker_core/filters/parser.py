"""From the text of an SQL92 filter to its tree, with the precedence of RocketMQ's grammar.

From loose to tight: OR; AND; `=`, `<>`, IS NULL; `<`, `>`, BETWEEN, IN, CONTAINS and the like; the
signs and NOT. So `NOT a = 1` is `(NOT a) = 1`: write `NOT (a = 1)`.
"""

from __future__ import annotations

from typing import Literal as OneOf
from typing import NoReturn, cast

from rocketpy.broker_core.filters.legality import Builder, Order
from rocketpy.broker_core.filters.syntax import (
    IsNull,
    Literal,
    Logic,
    Negative,
    Node,
    Property,
    TextSearch,
)
from rocketpy.broker_core.filters.tokens import END, FLOAT, NAME, NUMBER, STRING, Token, Tokens

DEEPEST = 64  # of parentheses, signs and comparisons of comparisons: no stack grows for ever

_ORDERS = (">", ">=", "<", "<=")
_SEARCHES = ("CONTAINS", "STARTSWITH", "ENDSWITH")
_NEGATABLE = (*_SEARCHES, "BETWEEN", "IN")
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}


def parse(sql: str) -> tuple[Node, int]:
    """Return the tree, and where the text goes on that Apache's parser does not look at.

    Raises:
        FilterSyntaxError: Apache's broker would refuse it too.
    """
    parser = _Parser(sql)
    node = parser.condition()
    return node, parser.at()


class _Parser:
    def __init__(self, sql: str) -> None:
        self._tokens = Tokens(sql)
        self._build = Builder(sql)
        self._depth = self._links = 0

    def at(self) -> int:
        return self._tokens.peek().at

    def condition(self) -> Node:
        return self._build.condition(self._or())

    def _or(self) -> Node:
        return self._logic("OR")

    def _logic(self, operator: OneOf["AND", "OR"]) -> Node:
        term = self._logic_term(operator)
        if self._tokens.peek().kind != operator:
            return term
        terms = [self._build.condition(term)]
        while self._tokens.peek().kind == operator:
            self._tokens.next()
            terms.append(self._build.condition(self._logic_term(operator)))
        return Logic(operator=operator, terms=tuple(terms), at=term.at)

    def _logic_term(self, operator: OneOf["AND", "OR"]) -> Node:
        return self._logic("AND") if operator == "OR" else self._equality()

    def _equality(self) -> Node:
        left = first = self._comparison()
        while (token := self._tokens.peek()).kind in ("=", "<>", "IS"):
            self._go_on(left, first)
            if token.kind == "IS":
                left = self._is_null(left)
                continue
            same = self._build.equal(left, self._comparison())
            left = same if token.kind == "=" else self._build.opposite(same, left.at)
        return left

    def _is_null(self, left: Node) -> Node:
        is_negated = self._tokens.peek().kind == "NOT"
        if is_negated:
            self._tokens.next()
        self._expect("NULL", "NULL" if is_negated else "NULL or NOT NULL")
        found = IsNull(operand=left, at=left.at)
        return self._build.opposite(found, left.at) if is_negated else found

    def _comparison(self) -> Node:
        left = first = self._unary()
        while (token := self._tokens.peek()).kind in (*_ORDERS, *_NEGATABLE, "NOT"):
            self._go_on(left, first)
            if token.kind in _ORDERS:
                left = self._build.ordered(cast(Order, token.kind), left, self._unary())
                continue
            is_negated = token.kind == "NOT"
            if is_negated:
                token = self._tokens.peek()
                if token.kind not in _NEGATABLE:
                    self._refuse(token, "BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH")
                self._tokens.next()
            left = self._range_or_text(token, left, is_negated)
        return left

    def _range_or_text(self, token: Token, left: Node, is_negated: bool) -> Node:
        if token.kind == "BETWEEN":
            low = self._unary()
            self._expect("AND", "AND")
            return self._build.between(left, low, self._unary(), is_negated=is_negated)
        if token.kind == "IN":
            return self._build.member(left, self._texts(), is_negated=is_negated)
        operator = cast(OneOf["CONTAINS", "STARTSWITH", "ENDSWITH"], token.kind)
        text = self._text()
        return TextSearch(
            operator=operator, operand=left, text=text, is_negated=is_negated, at=left.at
        )

    def _texts(self) -> tuple[str, ...]:
        self._expect("(", "( and texts in single quotes")
        texts = [self._text()]
        while self._tokens.peek().kind == ",":
            self._tokens.next()
            texts.append(self._text())
        self._expect(")", ", or )")
        return tuple(texts)

    def _text(self) -> str:
        return _unquoted(self._expect(STRING, "a text in single quotes").text)

    def _unary(self) -> Node:
        token = self._tokens.peek()
        if token.kind not in ("+", "-", "NOT", "("):
            return self._primary()
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._build.refuse(token.at, f"more than {DEEPEST} levels deep; write it flatter")
        self._tokens.next()
        node = self._nested(token)
        self._depth -= 1
        return node

    def _nested(self, token: Token) -> Node:
        if token.kind == "(":
            node = self._or()
            self._expect(")", "AND, OR, a comparison, or )")
            return node
        operand = self._unary()
        if token.kind == "NOT":
            return self._build.opposite(self._build.condition(operand), token.at)
        return Negative(operand=operand, at=token.at) if token.kind == "-" else operand

    def _primary(self) -> Node:
        token = self._tokens.peek()
        if token.kind not in (STRING, NUMBER, FLOAT, NAME, *_CONSTANTS):
            self._refuse(token, "a property, a constant, NOT, or (")
        self._tokens.next()
        if token.kind == NAME:
            return Property(name=token.text, at=token.at)
        if token.kind == STRING:
            return Literal(value=_unquoted(token.text), at=token.at)
        if token.kind == NUMBER:
            return self._build.whole_number(token.text, token.at)
        if token.kind == FLOAT:
            return self._build.fraction(token.text, token.at)
        return Literal(value=_CONSTANTS[token.kind], at=token.at)

    def _expect(self, kind: str, wanted: str) -> Token:
        token = self._tokens.peek()
        if token.kind != kind:
            self._refuse(token, wanted)
        return self._tokens.next()

    def _refuse(self, token: Token, wanted: str) -> NoReturn:
        found = "the filter ends here" if token.kind == END else f"here is {token.text}"
        raise self._build.refuse(token.at, f"{found}; wanted is {wanted}")

    def _go_on(self, left: Node, first: Node) -> None:
        """Take the operator; count what makes a tree deep without parentheses: a = b = c ..."""
        token = self._tokens.next()
        self._links += left is not first
        if self._links > DEEPEST:
            raise self._build.refuse(token.at, f"more than {DEEPEST} comparisons of comparisons")


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")
