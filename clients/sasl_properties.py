"""The `sasl.*` keys: who the client says it is, and how."""

from typing import Final

from clients.connection import Login, TokenSource
from clients.jaas import LoginModule, parse_jaas
from clients.values import Values
from model.errors import ConfigError

_MECHANISM: Final = ("sasl.mechanism", "sasl.mechanisms")
_JAAS: Final = "sasl.jaas.config"
_NAME, _PASSWORD = "sasl.username", "sasl.password"
_OAUTH: Final = "sasl.oauthbearer"
_URL: Final = f"{_OAUTH}.token.endpoint.url"
_ID: Final = (
    f"{_OAUTH}.client.credentials.client.id",
    f"{_OAUTH}.client.id",
)
_SECRET: Final = (
    f"{_OAUTH}.client.credentials.client.secret",
    f"{_OAUTH}.client.secret",
)
_SCOPE: Final = f"{_OAUTH}.scope"
_LOGIN_KEYS: Final = (_NAME, _PASSWORD)
_TOKEN_KEYS: Final = (_URL, *_ID, *_SECRET, _SCOPE)
SASL_KEYS: Final = (*_MECHANISM, _JAAS, *_LOGIN_KEYS, *_TOKEN_KEYS)
_MODULES: Final = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
}


def read_sasl(values: Values) -> Login | TokenSource:
    """What the keys say. Raises ConfigError for what cannot be used."""
    mechanism = _mechanism(values)
    module = _module(values, mechanism)
    if mechanism == "OAUTHBEARER":
        return _tokens(values, module)
    _refuse(values, _TOKEN_KEYS, mechanism)
    if module is not None:
        _refuse_beside_jaas(values, _LOGIN_KEYS)
        if module.options.get("tokenauth", "false").lower() != "false":
            raise values.fault(_JAAS, "delegation tokens (tokenauth) are not supported")
        name, password = (_option(values, module, o) for o in ("username", "password"))
    else:
        why = f"{mechanism} needs a name and a password; {_JAAS} may have both"
        name, password = (values.needed(key, why=why) for key in _LOGIN_KEYS)
    return Login(mechanism=mechanism, username=name, password=password)


def _mechanism(values: Values) -> str:
    given = values.get(*_MECHANISM)
    if given is None:
        raise ConfigError(
            f"{values.path}: sasl.mechanism is missing, and Kafka's default, GSSAPI, "
            f"is not supported; set it to one of {', '.join(_MODULES)}"
        )
    if given not in _MODULES:
        (key,) = values.given(_MECHANISM)
        raise values.fault(
            key,
            f"{given} is not supported; use one of {', '.join(_MODULES)}, on another "
            "listener if this one has none of them",
        )
    return given


def _module(values: Values, mechanism: str) -> LoginModule | None:
    text = values.get(_JAAS)
    if text is None:
        return None
    try:
        module = parse_jaas(text)
    except ValueError as exc:
        raise values.fault(_JAAS, str(exc)) from exc
    if module.name != _MODULES[mechanism]:
        raise values.fault(
            _JAAS,
            f"its {module.name} does not go with the mechanism {mechanism}, whose "
            f"login module is {_MODULES[mechanism]}",
        )
    return module


def _tokens(values: Values, module: LoginModule | None) -> TokenSource:
    _refuse(values, _LOGIN_KEYS, "OAUTHBEARER")
    why = "plimsoll gets its tokens there, by client credentials"
    url = values.needed(_URL, why=why)
    if not url.startswith(("https://", "http://")):
        raise values.fault(_URL, "it is no address that begins with https://")
    if module is not None and module.options:
        _refuse_beside_jaas(values, (*_ID, *_SECRET, _SCOPE))
        return TokenSource(
            url=url,
            client_id=_option(values, module, "clientId"),
            client_secret=_option(values, module, "clientSecret"),
            scope=module.options.get("scope"),
        )
    why = f"it goes with {_URL}; {_JAAS} may have it, too"
    return TokenSource(
        url=url,
        client_id=values.needed(*_ID, why=why),
        client_secret=values.needed(*_SECRET, why=why),
        scope=values.get(_SCOPE),
    )


def _option(values: Values, module: LoginModule, name: str) -> str:
    if not module.options.get(name):
        raise values.fault(_JAAS, f'{name}="..." is missing in it')
    return module.options[name]


def _refuse(values: Values, keys: tuple[str, ...], mechanism: str) -> None:
    if given := values.given(keys):
        raise values.fault(given[0], f"it does not go with the mechanism {mechanism}")


def _refuse_beside_jaas(values: Values, keys: tuple[str, ...]) -> None:
    if given := values.given(keys):
        raise values.fault(given[0], f"it says what {_JAAS} says, too; keep one")
