"""Over mutual TLS the broker holds everyone to what is theirs."""

import asyncio
import json
import shutil

import nats
import pytest

from dynavg.engines.fleet.broker import BROKER_FILE, broker, free_port
from dynavg.engines.fleet.certificates import Authority
from dynavg.engines.fleet.control import Kind
from dynavg.engines.fleet.line import Line
from dynavg.engines.fleet.post import NoBrokerError, tls_context
from dynavg.engines.fleet.subjects import down, up
from tests.fleet.fleets import join_all, small_fleet, until
from tests.fleet.rogue import MOST, Rogue

FILES = {"cert": "certificate", "key": "key", "ca": "ca"}
TASK = {"rounds": 400, "delta": 0.05, "every": 5}


@pytest.fixture
def fleet(tmp_path):
    with small_fleet(tmp_path, 3, TASK, tls=True, connect_seconds=3.0) as made:
        yield made


def connects(fleet, name):
    with Line(fleet.config, name, [0], MOST):
        return True


def test_the_certificates_let_their_processes_in(fleet):
    assert connects(fleet, "host-0")


def test_without_a_certificate_nobody_gets_in(fleet):
    async def knock():
        context = tls_context(fleet.config.credentials / "host-0")
        bare = type(context)(context.protocol)
        bare.load_verify_locations(fleet.config.credentials / "host-0" / "ca.pem")
        client = await nats.connect(
            fleet.config.url, tls=bare, allow_reconnect=False, connect_timeout=2, error_cb=ignore
        )
        await client.flush(timeout=2)

    with pytest.raises((OSError, nats.errors.Error)):
        asyncio.run(knock())


async def ignore(error):
    pass


def test_without_tls_nobody_gets_in(fleet):
    plain = fleet.config.model_copy(
        update={"credentials": None, "url": f"nats://127.0.0.1:{fleet.port}"}
    )
    with pytest.raises(NoBrokerError, match="a NATS broker is wanted there"):
        connects(type("Fleet", (), {"config": plain}), "host-0")


@pytest.mark.parametrize("only_client", [True, False])
def test_a_certificate_of_another_authority_does_not_get_in(fleet, only_client):
    strange = fleet.config.credentials / "strange"
    Authority(fleet.folder / "other", "other", 1).issue(strange, "host-0")
    if only_client:
        shutil.copy(fleet.config.credentials / "host-0" / "ca.pem", strange / "ca.pem")
    with pytest.raises(NoBrokerError):
        connects(fleet, "strange")


def test_a_certificate_that_the_broker_does_not_list_does_not_get_in(fleet):
    shutil.copytree(fleet.config.credentials / "broker", fleet.config.credentials / "host-9")
    with pytest.raises(NoBrokerError):
        connects(fleet, "host-9")


@pytest.mark.slow
def test_a_learner_can_neither_speak_for_another_nor_read_what_another_gets(fleet):
    """It hears nothing of learner 0's model, and its word under learner 0's name goes nowhere."""
    coordinator = fleet.coordinator()
    with Rogue(fleet, 2, listens=[0, 1, 2]) as spy:
        learners = fleet.learners(range(1), range(1, 2))
        until(lambda: len(fleet.saw("waiting")) == 2)
        spy.say(spy.note(Kind.BYE, sender=0), as_id=0)
        spy.say(spy.violation(sender=0), as_id=0)
        spy.join()
        heard = [id for id, _ in spy.line.receive()]
        spy.say(spy.note(Kind.BYE))
        assert join_all([coordinator, *learners]) == [0] * 3
        heard += [id for id, _ in spy.line.receive()]
    assert set(heard) <= {2}
    book = fleet.book()
    assert book.refused == []
    assert bool((fleet.result().losses.samples[:2] == 10).all())


def test_no_subject_but_its_own_is_open_to_a_learner(fleet):
    refused = []

    async def remember(error):
        refused.append(str(error).lower())

    async def try_all():
        config = fleet.config
        context = tls_context(config.credentials / "host-0")
        client = await nats.connect(config.url, tls=context, error_cb=remember)
        for subject in (up(config, 1), down(config, 0), "_INBOX.reply", "$SYS.REQ.SERVER.PING"):
            await client.publish(subject, b"x")
        for subject in (down(config, 1), down(config, "*"), up(config, "*"), ">", "_INBOX.>"):
            await client.subscribe(subject)
        await client.flush()
        await client.publish(up(config, 0), b"allowed")
        await client.flush()
        await client.close()

    asyncio.run(try_all())
    assert len([why for why in refused if "permissions violation for publish" in why]) == 4
    assert len([why for why in refused if "permissions violation for subscription" in why]) == 5
    assert len(refused) == 9


@pytest.mark.slow
def test_a_site_behind_a_leaf_node_may_do_what_its_certificate_may(fleet):
    """The site's own server lets everybody do everything; the broker does not."""
    config, port, open_port = fleet.config, free_port(), free_port()
    file, site = fleet.folder / BROKER_FILE, fleet.folder / "site.conf"
    settings = json.loads(file.read_text())
    settings["leafnodes"] = {"host": "127.0.0.1", "port": port, "tls": settings["tls"]}
    file.write_text(json.dumps(settings))
    own = config.credentials / "host-1"
    files = {f"{name}_file": f"{own}/{of}.pem" for name, of in FILES.items()}
    remote = {"url": f"tls://localhost:{port}", "tls": files}
    listens = {"host": "127.0.0.1", "port": open_port}
    site.write_text(json.dumps(listens | {"leafnodes": {"remotes": [remote]}}))
    fleet.restart_broker(pause=0.0)
    heard = []

    async def hear(message):
        heard.append(message.subject)

    async def talk():
        there = await nats.connect(f"nats://127.0.0.1:{open_port}")
        context = tls_context(config.credentials / "coordinator")
        here = await nats.connect(config.url, tls=context)
        await here.subscribe(up(config, "*"), cb=hear)
        for subject in (down(config, 1), down(config, 0), down(config, "*")):
            await there.subscribe(subject, cb=hear)
        for _ in range(50):
            for id in (0, 1, 2):
                await there.publish(up(config, id), b"x")
                await here.publish(down(config, id), b"x")
            await there.flush()
            await here.flush()
            await asyncio.sleep(0.1)
            if {up(config, 1), down(config, 1)} <= set(heard):
                break
        await there.close()
        await here.close()

    with broker(site, open_port):
        asyncio.run(talk())
    assert set(heard) == {up(config, 1), down(config, 1)}


def test_keys_are_readable_by_their_owner_only(fleet):
    keys = list(fleet.folder.rglob("key.pem"))
    assert len(keys) == 6
    assert {key.stat().st_mode & 0o777 for key in keys} == {0o600}


def test_the_broker_listens_on_loopback(fleet):
    assert '"host": "127.0.0.1"' in (fleet.folder / "broker.conf").read_text()
