"""`plimsoll login`: a login for the HTTP listener of the service, to be stored in its file."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.exit_codes import Exit
from control.cli.options import Output
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.output_types import LoginAnswer


def login(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The client's name.")],
    *,
    role: Annotated[
        str,
        typer.Option(
            metavar="ROLE",
            help="Role: viewer (read), operator (pause and approve, too), or admin (read who "
            "did what, too).",
        ),
    ] = "viewer",
    token: Annotated[
        bool, typer.Option("--token", help="Make a bearer token, which is printed once, on stderr.")
    ] = False,
    output: Output = Form.TABLE,
) -> int:
    """Print what the file named by `logins` in [service] has of a client.

    Without --token, the password is asked for, or read from the first line of stdin.
    """
    from control.cli.output_types import LoginAnswer
    from control.render.text import answer_text
    from control.service.logins import Role, check_login_name, new_token, password_hash, token_hash
    from model.errors import ConfigError

    check_login_name(name)
    if role not in list(Role):
        raise ConfigError(f"there is no role {role!r}; there are {', '.join(Role)}")
    password = secret = None
    if token:
        made = new_token()
        secret = token_hash(made)
        sys.stderr.write(f"plimsoll: the token of {name}, which is not stored: {made}\n")
    else:
        password = password_hash(_password())
    answer = LoginAnswer.of(name=name, role=role, password=password, token=secret)
    sys.stdout.write(answer_text(answer, _table, output))
    return Exit.DONE


def _table(answer: "LoginAnswer") -> str:
    lines = [f'["{answer.name}"]', f'role = "{answer.role}"']
    if answer.password is not None:
        lines.append(f'password = "{answer.password}"')
    if answer.token is not None:
        lines.append(f'token = "{answer.token}"')
    return "\n".join(lines) + "\n"


def _password() -> str:
    """What the user types twice, or the first line of stdin."""
    import getpass

    from control.service.logins import check_password
    from model.errors import ConfigError

    if not sys.stdin.isatty():
        return check_password(sys.stdin.readline(4096).rstrip("\r\n"))
    found = check_password(getpass.getpass("Password: "))
    if getpass.getpass("Again: ") != found:
        raise ConfigError("the passwords differ")
    return found
