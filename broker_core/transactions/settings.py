"""How long transactions are waited for, and how often their producers are asked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """Apache's settings, named in brackets, with its defaults."""

    timeout_ms: int = 6_000  # [transactionTimeOut]: a younger transaction is not asked for
    check_max: int = 15  # [transactionCheckMax]: how often a producer is asked
    check_interval_ms: int = 30_000  # [transactionCheckInterval]: for whoever calls the checker
    op_body_limit: int = 4_096  # [transactionOpMsgMaxSize]: bytes of one op message
