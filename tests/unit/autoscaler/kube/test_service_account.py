"""The token of the service account is read again while it is used, whatever the wall clock shows."""

from kubernetes_asyncio.client import Configuration

from autoscaler.kube.service_account import follow_token


async def test_replaced_token_is_used_after_ten_seconds(tmp_path):
    file, now, settings = tmp_path / "token", [100.0], Configuration()
    file.write_text("first\n")
    settings.api_key["BearerToken"] = "Bearer first"
    follow_token(settings, file, lambda: now[0])
    file.write_text("second\n")
    now[0] += 9
    assert await settings.get_api_key_with_prefix("BearerToken") == "Bearer first"
    now[0] += 1
    assert await settings.get_api_key_with_prefix("BearerToken") == "Bearer second"


async def test_empty_file_does_not_replace_the_token(tmp_path):
    file, now, settings = tmp_path / "token", [100.0], Configuration()
    file.write_text("")
    settings.api_key["BearerToken"] = "Bearer first"
    follow_token(settings, file, lambda: now[0])
    now[0] += 60
    assert await settings.get_api_key_with_prefix("BearerToken") == "Bearer first"
    file.write_text("second")
    assert await settings.get_api_key_with_prefix("BearerToken") == "Bearer second"
