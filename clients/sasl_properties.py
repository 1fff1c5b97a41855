"""The `sasl.*` keys: how a client logs in."""

from typing import Final

from clients.connection import Login, MskIam, TokenSource
from clients.jaas import LoginModule, parse_jaas
from clients.properties import Properties
from model.errors import ConfigError

_MECHANISM: Final = ("sasl.mechanism", "sasl.mechanisms")
_JAAS: Final = "sasl.jaas.config"
_NAME, _PASSWORD = "sasl.username", "sasl.password"
_OAUTH: Final = "sasl.oauthbearer"
_URL: Final = f"{_OAUTH}.token.endpoint.url"
_ID: Final = (f"{_OAUTH}.client.credentials.client.id", f"{_OAUTH}.client.id")
_SECRET: Final = (f"{_OAUTH}.client.credentials.client.secret", f"{_OAUTH}.client.secret")
_SCOPE: Final = f"{_OAUTH}.scope"
_LOGIN_KEYS: Final = (_NAME, _PASSWORD)
_TOKEN_KEYS: Final = (_URL, *_ID, *_SECRET, _SCOPE)
SASL_KEYS: Final = (*_MECHANISM, _JAAS, *_LOGIN_KEYS, *_TOKEN_KEYS)
_MODULES: Final = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
    "AWS_MSK_IAM": "IAMLoginModule",
}
_IAM_OPTIONS: Final = {
    "awsProfileName": "profile",
    "awsRoleArn": "role_arn",
    "awsRoleSessionName": "role_session",
}
_IAM_UNUSED: Final = frozenset({"awsDebugCreds", "awsMaxRetries", "awsMaxBackOffTimeMs"})
"""Options that tune AWS' library for Java, and do not change which credentials are used."""


def read_sasl(properties: Properties) -> Login | TokenSource | MskIam:
    """Return the login, or the source of tokens, that the keys describe.

    Raises ConfigError where a key is missing, unsupported or contradicts another one.
    """
    mechanism = _mechanism(properties)
    module = _module(properties, mechanism)
    if mechanism == "OAUTHBEARER":
        return _tokens(properties, module)
    _refuse(properties, _TOKEN_KEYS, mechanism)
    if mechanism == "AWS_MSK_IAM":
        return _iam(properties, module)
    if module is not None:
        _refuse_beside_jaas(properties, _LOGIN_KEYS)
        if module.options.get("tokenauth", "false").lower() != "false":
            raise properties.fault(_JAAS, "delegation tokens (tokenauth) are not supported")
        name, password = (_option(properties, module, o) for o in ("username", "password"))
    else:
        reason = f"{mechanism} needs a user name and a password; {_JAAS} may give both"
        name, password = (properties.require(key, reason=reason) for key in _LOGIN_KEYS)
    return Login(mechanism=mechanism, username=name, password=password)


def _mechanism(properties: Properties) -> str:
    given = properties.get(*_MECHANISM)
    if given is None:
        raise ConfigError(
            f"{properties.path}: sasl.mechanism is missing, and Kafka's default, "
            f"GSSAPI, is not supported; set it to one of {', '.join(_MODULES)}"
        )
    if given not in _MODULES:
        (key,) = properties.given(_MECHANISM)
        raise properties.fault(
            key,
            f"{given} is not supported; use one of {', '.join(_MODULES)}, on another "
            "listener if this one offers none of them",
        )
    return given


def _module(properties: Properties, mechanism: str) -> LoginModule | None:
    text = properties.get(_JAAS)
    if text is None:
        return None
    try:
        module = parse_jaas(text)
    except ValueError as exc:
        raise properties.fault(_JAAS, str(exc)) from exc
    if module.name != _MODULES[mechanism]:
        raise properties.fault(
            _JAAS,
            f"its login module {module.name} does not fit the mechanism {mechanism}, "
            f"which needs {_MODULES[mechanism]}",
        )
    return module


def _tokens(properties: Properties, module: LoginModule | None) -> TokenSource:
    _refuse(properties, _LOGIN_KEYS, "OAUTHBEARER")
    reason = "plimsoll fetches its tokens there, by client credentials"
    url = properties.require(_URL, reason=reason)
    if not url.startswith(("https://", "http://")):
        raise properties.fault(_URL, "it is not an address that begins with https:// or http://")
    if module is not None and module.options:
        _refuse_beside_jaas(properties, (*_ID, *_SECRET, _SCOPE))
        return TokenSource(
            url=url,
            client_id=_option(properties, module, "clientId"),
            client_secret=_option(properties, module, "clientSecret"),
            scope=module.options.get("scope"),
        )
    reason = f"{_URL} needs it; {_JAAS} may give it, too"
    return TokenSource(
        url=url,
        client_id=properties.require(*_ID, reason=reason),
        client_secret=properties.require(*_SECRET, reason=reason),
        scope=properties.get(_SCOPE),
    )


def _iam(properties: Properties, module: LoginModule | None) -> MskIam:
    _refuse(properties, _LOGIN_KEYS, "AWS_MSK_IAM")
    options = {} if module is None else {**module.options}
    for name in options:
        if name not in _IAM_OPTIONS and name not in _IAM_UNUSED:
            raise properties.fault(
                _JAAS, f"its option {name} is not supported; use {', '.join(_IAM_OPTIONS)}"
            )
    found = MskIam(**{field: options.get(name) or None for name, field in _IAM_OPTIONS.items()})
    if found.profile and found.role_arn:
        raise properties.fault(_JAAS, "give awsProfileName or awsRoleArn, not both")
    return found


def _option(properties: Properties, module: LoginModule, name: str) -> str:
    if not module.options.get(name):
        raise properties.fault(_JAAS, f'{name}="..." is missing in it')
    return module.options[name]


def _refuse(properties: Properties, keys: tuple[str, ...], mechanism: str) -> None:
    if given := properties.given(keys):
        raise properties.fault(given[0], f"it does not fit the mechanism {mechanism}")


def _refuse_beside_jaas(properties: Properties, keys: tuple[str, ...]) -> None:
    if given := properties.given(keys):
        raise properties.fault(given[0], f"{_JAAS} sets the same; keep one of them")
