"""The password in a file, or the URL with it, read whenever a connection is made.

Whoever rotates a password writes the file; connections that stand stay valid, new ones take the
new password. A file that cannot be read refuses the connection, as a wrong password does: then
too the next connection reads it again. A URL's file that is gone (its Secret was deleted) changes
nothing: what the program was started with counts.
"""

from __future__ import annotations

from redis.credentials import CredentialProvider
from redis.exceptions import AuthenticationError

from tidework.model.redis_url import Login, read_redis_url, read_url_file


class PasswordFile(CredentialProvider):
    """Gives redis-py what the file of a login says now."""

    def __init__(self, login: Login) -> None:
        self._login = login

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """User and password. Raises AuthenticationError of redis-py."""
        file = self._login.password_file
        assert file is not None
        try:
            # Editors and `echo` end a line; no password does.
            password = file.read_text("utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise AuthenticationError(f"the password file cannot be read: {error}") from error
        if not password:
            raise AuthenticationError("the password file is empty")
        return (self._login.username, password) if self._login.username else (password,)

    async def get_credentials_async(self) -> tuple[str] | tuple[str, str]:
        """The same."""
        return self.get_credentials()


class UrlFile(CredentialProvider):
    """Gives redis-py the login of the URL that the file holds now."""

    def __init__(self, login: Login) -> None:
        self._login = login

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """User and password. Raises AuthenticationError of redis-py."""
        login = self._login
        assert login.url_file is not None
        try:
            if text := read_url_file(login.url_file):
                url = read_redis_url(text)
                login = url.sentinel_login if login.is_of_sentinels else url.login
        except ValueError as error:
            raise AuthenticationError(str(error)) from error
        if login.password_file is not None:
            return PasswordFile(login).get_credentials()
        if login.password and not login.username:
            return (login.password,)
        # redis-py logs in whatever this says; a user without a password takes any.
        return login.username or "default", login.password

    async def get_credentials_async(self) -> tuple[str] | tuple[str, str]:
        """The same."""
        return self.get_credentials()


def login_options(login: Login) -> dict[str, object]:
    """What redis-py takes for a login."""
    if login.url_file is not None:
        return {"credential_provider": UrlFile(login)}
    if login.password_file is not None:
        return {"credential_provider": PasswordFile(login)}
    return {"username": login.username or None, "password": login.password or None}
