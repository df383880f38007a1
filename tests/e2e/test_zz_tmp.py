from __future__ import annotations
import json
from pathlib import Path
import pytest
from tests.e2e.rig.images import build_images, load_images
from tests.e2e.rig.waiting import wait_until
from tests.e2e.test_rig import pod, create, output
pytestmark = pytest.mark.expected_seconds(20)

def test_images(cluster, public_images, options, namespace):
    import time
    for i in range(2):
        b=time.monotonic()
        with cluster.machine.alone():
            built = build_images(cluster.machine, public_images.python, Path("/tmp/rigtest/ctx"))
            c=time.monotonic()
            refs = load_images(cluster, [built.operator, built.worker, built.example], options.registry)
        print("BUILT", i, c-b, time.monotonic()-c, refs)
    create(cluster, namespace, pod("ex", refs[2], "ls", "/w", "/x"))
    print(output(cluster, namespace, "ex"))

def test_fails(cluster, public_images, namespace):
    create(cluster, namespace, pod("crash", public_images.python, "python3", "-c", "print('hello'); raise SystemExit(3)", restartPolicy="Always"), pod("noimage", "localhost/nothere:1"))
    wait_until(lambda: cluster.kubectl_json("get","pod","crash","-n",namespace)["status"]["phase"]=="Succeeded", within=8, describe="the pod succeeds")
