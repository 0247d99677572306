"""What the scripts share: checks that say their names, and a server's address."""

import sys
import traceback


def endpoint():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} ENDPOINT")
    return sys.argv[1]


def run(checks, *arguments):
    """Runs the checks in their order; the first that fails ends it."""
    for check in checks:
        name = check.__name__.replace("_", " ")
        try:
            check(*arguments)
        except Exception:
            traceback.print_exc()
            print(f"FAILED {name}", flush=True)
            sys.exit(1)
        print(f"ok     {name}", flush=True)


def refused(code, call, **arguments):
    """The call must fail with this code; `code` may be one of several that versions of the SDK make of one error."""
    from botocore.exceptions import ClientError

    codes = code if isinstance(code, tuple) else (code,)
    try:
        call(**arguments)
    except ClientError as error:
        got = error.response["Error"]["Code"]
        assert got in codes, f"{got} instead of {codes}"
        return error.response
    raise AssertionError(f"it was accepted, and should have been refused with {codes}")
