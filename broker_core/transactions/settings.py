"""How long transactions are waited for, and how often their producers are asked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """Apache's settings, named in brackets, with its defaults."""

    timeout_ms: int = 6_000  # [transactionTimeOut]: a younger transaction is not asked for
    check_max: int = 15  # [transactionCheckMax]: how often a producer is asked
    check_interval_ms: int = 30_000  # [transactionCheckInterval]: for whoever calls the checker
    # [transactionOpMsgMaxSize]: bytes of one op message. 0: one for each half message; brokers of
    # 4.9 understand no others, and would ask for all that we ended.
    op_body_limit: int = 0
