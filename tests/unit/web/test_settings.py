"""Flags, environment variables, defaults, and what happens to bad values."""

from pathlib import Path

import pytest

from web import settings
from web.serving import served_models
from web.settings import parse, without_secrets


@pytest.mark.parametrize(
    ("environ", "host"),
    [
        ({}, "127.0.0.1"),
        ({"SPACE_ID": "someone/space"}, "0.0.0.0"),
        ({"GRADIO_SERVER_NAME": "127.0.0.5"}, "127.0.0.5"),
        ({"GRADIO_SERVER_NAME": "127.0.0.5", "SPACE_ID": "someone/space"}, "127.0.0.5"),
        ({"HEADSCOPE_HOST": "127.0.0.6", "GRADIO_SERVER_NAME": "127.0.0.5"}, "127.0.0.6"),
    ],
)
def test_default_host_depends_on_the_environment(environ: dict[str, str], host: str) -> None:
    assert parse([], environ).host == host
    assert parse(["--host", "127.0.0.9"], environ).host == "127.0.0.9"


@pytest.mark.parametrize(
    ("arguments", "environ", "port"),
    [
        ([], {}, 7860),
        ([], {"GRADIO_SERVER_PORT": "8001"}, 8001),
        ([], {"GRADIO_SERVER_PORT": "8001", "HEADSCOPE_PORT": "8002"}, 8002),
        (["--port", "8003"], {"HEADSCOPE_PORT": "8002"}, 8003),
    ],
)
def test_port_from_flag_and_environment(arguments: list[str], environ: dict[str, str], port: int) -> None:
    assert parse(arguments, environ).port == port


@pytest.mark.parametrize(
    ("arguments", "environ", "train"),
    [
        ([], {}, True),
        (["--no-train"], {}, False),
        ([], {"HEADSCOPE_NO_TRAIN": "1"}, False),
        ([], {"SPACE_ID": "someone/space"}, True),
        ([], {"SPACE_ID": "someone/space", "SPACES_ZERO_GPU": "true"}, False),
        ([], {"SPACE_ID": "someone/space", "SPACES_ZERO_GPU": "true", "HEADSCOPE_NO_TRAIN": "false"}, True),
    ],
)
def test_visitors_train_unless_the_hardware_is_shared(
    arguments: list[str], environ: dict[str, str], train: bool
) -> None:
    assert parse(arguments, environ).train is train


@pytest.mark.parametrize(
    ("arguments", "environ", "n_proxies"),
    [
        ([], {}, 0),
        ([], {"SPACE_ID": "someone/space"}, 1),
        (["--share"], {}, 1),
        (["--share", "--trusted-proxies", "0"], {}, 0),
        (["--trusted-proxies", "2"], {"SPACE_ID": "someone/space"}, 2),
        ([], {"SPACE_ID": "someone/space", "HEADSCOPE_TRUSTED_PROXIES": "0"}, 0),
    ],
)
def test_trusted_proxies_default(arguments: list[str], environ: dict[str, str], n_proxies: int) -> None:
    assert parse(arguments, environ).trusted_proxies == n_proxies


def test_a_space_is_known_by_its_variables() -> None:
    assert (parse([], {}).is_space, parse([], {}).space_hosts) == (False, ())
    space = parse([], {"SPACE_ID": "someone/space", "SPACE_HOST": "demo.example.org,x.hf.space"})
    assert (space.is_space, space.space_hosts) == (True, ("demo.example.org", "x.hf.space"))


def test_key_is_read_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "key"
    path.write_text("open-sesame-0123456\n")
    assert parse(["--api-key-file", str(path)], {}).api_key == "open-sesame-0123456"
    assert parse([], {"HEADSCOPE_API_KEY_FILE": str(path)}).api_key == "open-sesame-0123456"
    for content, said in (
        ("", "one or more"),
        ("two words", "without spaces"),
        ("x" * 5_000, "4,096 bytes"),
        ("é", "ASCII"),
        ("x" * 15, "at least 16 characters, found 15"),
    ):
        path.write_text(content)
        with pytest.raises(SystemExit):
            parse(["--api-key-file", str(path)], {})
        assert said in capsys.readouterr().err
    path.write_text("open-sesame-0123456")
    for arguments in (["--api-key-file", str(tmp_path)], ["--api-key-file", str(path), "--api-key", "x" * 16]):
        with pytest.raises(SystemExit):
            parse(arguments, {})
        assert "--api-key-file" in capsys.readouterr().err


def test_origins_are_normalised() -> None:
    given = "https://Example.org/, http://127.0.0.1:3000,http://[::1]:8000"
    expected = ("https://example.org", "http://127.0.0.1:3000", "http://[::1]:8000")
    assert parse(["--allowed-origins", given], {}).allowed_origins == expected
    assert parse([], {"HEADSCOPE_ALLOWED_ORIGINS": "*"}).allowed_origins == ("*",)
    assert parse([], {}).allowed_origins == ()
    hosts = parse(["--allowed-hosts", "example.org, *.example.net"], {}).allowed_hosts
    assert hosts == ("example.org", "*.example.net") and parse([], {"HEADSCOPE_ALLOWED_HOSTS": "*"}).allowed_hosts == (
        "*",
    )


@pytest.mark.parametrize(
    ("arguments", "environ", "root"),
    [
        ([], {}, ""),
        (["--root-path", "/heads"], {}, "/heads"),
        (["--root-path", "/heads/"], {"GRADIO_ROOT_PATH": "/other"}, "/heads"),
        (["--root-path", "/"], {}, ""),
        ([], {"GRADIO_ROOT_PATH": "/tools/heads-1.2_b/"}, "/tools/heads-1.2_b"),
        ([], {"GRADIO_ROOT_PATH": "/other", "HEADSCOPE_ROOT_PATH": "/heads"}, "/heads"),
        (["--root-path", "/look-inside"], {}, "/look-inside"),
    ],
)
def test_root_path(arguments: list[str], environ: dict[str, str], root: str) -> None:
    assert parse(arguments, environ).root_path == root


def test_log_flags() -> None:
    found = parse(["--access-log", "--log-level", "INFO"], {})
    assert found.access_log and found.log_level == "info"
    environ = {"HEADSCOPE_ACCESS_LOG": "1", "HEADSCOPE_LOG_LEVEL": "debug", "HEADSCOPE_LOG_FORMAT": "json"}
    found = parse([], environ)
    assert found.access_log and found.log_level == "debug" and found.log_format == "json"


def test_every_flag_has_a_variable() -> None:
    environ = {
        "HEADSCOPE_CHECKPOINT": "one, owner/two",
        "HEADSCOPE_DEVICE": "cpu",
        "HEADSCOPE_DTYPE": "float32",
        "HEADSCOPE_SHARE": "true",
        "HEADSCOPE_API_KEY": "x" * 16,
    }
    found = parse([], environ)
    assert found.checkpoints == ("one", "owner/two")
    assert (found.device, found.dtype, found.share, found.api_key) == ("cpu", "float32", True, "x" * 16)
    flags = ["--checkpoint", "three", "--checkpoint", "four", "--dtype", "bfloat16", "--api-key", "y" * 16]
    found = parse(flags, environ)
    assert found.checkpoints == ("three", "four")
    assert (found.dtype, found.api_key) == ("bfloat16", "y" * 16)


@pytest.mark.parametrize(
    ("arguments", "environ", "named"),
    [
        (["--max-stop", "2"], {}, "--max-stop is not a setting: it is fixed at 16"),
        (["--max-stop=2"], {}, "--max-stop is not a setting"),
        (
            [],
            {"HEADSCOPE_MAX_READING_SECONDS": "9"},
            "--max-reading-seconds is not a setting: --max-question-seconds",
        ),
        (["--max-traces", "2"], {}, "--max-traces is not a setting: it is fixed at 2"),
        ([], {"HEADSCOPE_NO_BFLOAT16_PRODUCTS": "1"}, "--dtype float32 decides"),
        (["--port", "0"], {}, "--port"),
        (["--port", "65536"], {}, "--port"),
        ([], {"HEADSCOPE_PORT": "many"}, "HEADSCOPE_PORT"),
        ([], {"GRADIO_SERVER_PORT": "x"}, "port"),
        (["--root-path", "heads"], {}, "found 'heads'"),
        (["--root-path", "/he ads"], {}, "--root-path"),
        (["--root-path", "/../heads"], {}, "--root-path"),
        (["--root-path", '/"><script>'], {}, "--root-path"),
        (["--root-path", "/heads//b"], {}, "--root-path"),
        (["--root-path", "/v1"], {}, "own addresses"),
        (["--root-path", "/learn/gpt"], {}, "own addresses"),
        ([], {"GRADIO_ROOT_PATH": "https://example.org/heads"}, "found 'https://example.org/heads'"),
        (["--dtype", "int4"], {}, "int4"),
        ([], {"HEADSCOPE_SHARE": "perhaps"}, "HEADSCOPE_SHARE"),
        (["--api-key", ""], {}, "--api-key"),
        (["--api-key", "two words"], {}, "--api-key"),
        (["--api-key", "x" * 15], {}, "at least 16 characters"),
        (["--colour"], {}, "--colour"),
        (["--log-level", "loud"], {}, "--log-level"),
        (["--allowed-hosts", "example.org:80"], {}, "--allowed-hosts"),
        (["--allowed-hosts", "http://example.org"], {}, "--allowed-hosts"),
        (["--allowed-origins", "example.org"], {}, "--allowed-origins"),
        (["--allowed-origins", "https://a.b/path"], {}, "--allowed-origins"),
    ],
)
def test_bad_values_end_with_status_2(
    arguments: list[str], environ: dict[str, str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parse(arguments, environ)
    assert end.value.code == 2
    assert named in capsys.readouterr().err


def test_names_folders_and_hub_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("checkpoints/a", "checkpoints/b", "elsewhere/a"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr(settings, "CHECKPOINTS", tmp_path / "checkpoints")
    monkeypatch.setattr(served_models, "CHECKPOINTS", tmp_path / "checkpoints")
    assert parse([], {}).checkpoints == ("a", "b")
    elsewhere = str(tmp_path / "elsewhere/a")
    (tmp_path / "elsewhere/run").mkdir()
    file = tmp_path / "elsewhere/run/ckpt.pt"
    file.touch()
    given = ["a", elsewhere, "owner/model", "owner/model@v1.0", str(file), "missing"]
    assert served_models.name_sources(given) == {
        "a": tmp_path / "checkpoints/a",
        elsewhere: tmp_path / "elsewhere/a",
        "owner/model": "owner/model",
        "owner/model@v1.0": "owner/model@v1.0",
        "run": file,
        "missing": tmp_path / "checkpoints/missing",
    }


def test_the_environment_without_secrets() -> None:
    secrets = {"HEADSCOPE_API_KEY": "open-sesame", "HF_TOKEN": "hf_x", "HUGGING_FACE_HUB_TOKEN": "hf_y"}
    assert without_secrets({"PATH": "/bin"} | secrets) == {"PATH": "/bin"}
