"""Up and down, second by second: no pod that holds a lease is taken.

The ReplicaSet controller that is played here prefers busy pods wherever it has the choice.
"""

from __future__ import annotations

from tests.support.autoscaling_rig import QUEUE, AutoscalingRig
from tidework_operator.cluster import Kind


async def test_five_hundred_jobs_go_up_from_zero_in_one_step_and_down_without_a_lost_lease() -> (
    None
):
    rig = AutoscalingRig(maxReplicas=8)
    await rig.put(500)

    await rig.play(1)
    assert rig.replicas == 8
    await rig.play_until(lambda: rig.replicas == 0 and not rig.fleet.pods, most=400)

    assert await rig.unfinished() == 0
    assert rig.fleet.taken_busy == []
    assert rig.fleet.most == 8
    assert rig.observations.wrong_victims == 0


async def test_a_falling_load_takes_idle_pods_alone_and_never_more_than_wanted() -> None:
    rig = AutoscalingRig(maxReplicas=6, minReplicas=1)
    await rig.put(12)
    await rig.play_until(lambda: rig.replicas == 6)
    for _ in range(60):
        if rig.fleet.second % 2 == 0:
            await rig.put(1)  # what keeps two or three workers busy
        await rig.play(1)
        assert rig.replicas >= rig.busy

    assert rig.replicas < 6
    assert len(rig.fleet.taken) >= 3
    assert rig.fleet.taken_busy == []


async def test_a_cache_that_is_later_than_we_wait_takes_wrong_pods_and_they_are_counted() -> None:
    rig = AutoscalingRig(maxReplicas=4, minReplicas=1, late=30, service=40)
    await rig.put(4)
    await rig.play_until(lambda: rig.replicas == 4)
    await rig.play(5)
    # One worker of four keeps its job, so that there is a wrong pod to take.
    for worker in list(rig.fleet.workers.values())[:3]:
        worker.held = {job: (token, 0) for job, (token, _) in worker.held.items()}

    await rig.play_until(lambda: rig.observations.wrong_victims > 0)

    assert rig.fleet.taken_busy
    warned = [
        event for event in rig.cluster.objects(Kind.EVENT) if event["reason"] == "WrongVictim"
    ]
    assert warned
    await rig.play(10)
    assert rig.marked == set()


async def test_new_backlog_cancels_a_drain() -> None:
    rig = AutoscalingRig(maxReplicas=3, service=20)
    await rig.put(3)
    await rig.play_until(lambda: rig.replicas == 3)
    await rig.play(5)
    finished = next(iter(rig.fleet.workers.values()))
    finished.held = {job: (token, 0) for job, (token, _) in finished.held.items()}
    await rig.play_until(lambda: bool(rig.marked))
    assert await rig.cordoned() >= {finished.pod}

    await rig.put(5)
    await rig.play(2)

    assert rig.marked == set()
    assert await rig.cordoned() == set()
    assert rig.replicas == 3
    assert finished.held
    assert rig.fleet.taken == []


async def test_another_leader_goes_on_in_the_middle() -> None:
    rig = AutoscalingRig(maxReplicas=5, minReplicas=1)
    await rig.put(20)
    await rig.play_until(lambda: rig.replicas == 5)
    for _ in range(80):
        rig.restart()  # nobody remembers anything for longer than three rounds
        await rig.play(3)

    # A leader that just came waits before it takes a mark for seen, so three rounds are too few:
    # but nothing is lost, and the first one that stays ends it.
    assert rig.fleet.taken_busy == []
    await rig.play_until(lambda: rig.replicas == 1)
    await rig.play_until(lambda: len(rig.fleet.pods) == 1)
    assert rig.fleet.taken_busy == []
    assert rig.marked == set()


async def test_a_pod_that_never_becomes_ready_goes_first() -> None:
    rig = AutoscalingRig(maxReplicas=3, minReplicas=1, service=30)
    await rig.put(3)
    await rig.play(2)
    stuck = list(rig.fleet.workers.values())[1]
    stuck.is_stuck = True
    await rig.play_until(lambda: rig.busy == 2)
    rig.change(maxReplicas=2, minReplicas=1)

    await rig.play_until(lambda: stuck.pod in rig.fleet.taken)

    assert rig.fleet.taken == [stuck.pod]
    assert rig.replicas == 2


async def test_a_busy_pod_that_is_not_ready_keeps_others_from_being_taken() -> None:
    rig = AutoscalingRig(maxReplicas=2, minReplicas=1, service=600)
    await rig.put(2)
    await rig.play_until(lambda: rig.busy == 2)
    await rig.play(3)
    busy, other = rig.fleet.workers.values()
    other.held = {job: (token, 0) for job, (token, _) in other.held.items()}

    async def flap() -> None:
        pod = next(pod for pod in rig.fleet.pods if pod["metadata"]["name"] == busy.pod)
        pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
        rig.cluster.put(Kind.POD, pod)

    for _ in range(20):
        await rig.fleet.step()
        await flap()
        await rig.autoscaler.tick()

    assert rig.replicas == 2
    assert f"pod {busy.pod} is not ready" in rig.why


async def test_a_rollout_freezes_shrinking_but_not_growing() -> None:
    rig = AutoscalingRig(maxReplicas=4, minReplicas=1)
    await rig.put(8)
    await rig.play_until(lambda: rig.replicas == 4)
    deployment = rig.fleet.deployment
    deployment["status"] = {
        "rolling": True,
        "observedGeneration": 100,
        "replicas": 5,
        "updatedReplicas": 1,
    }
    rig.cluster.put(Kind.DEPLOYMENT, deployment)

    await rig.play(40)
    assert rig.replicas == 4
    assert "a rollout is under way" in rig.why
    assert await rig.cordoned() == set()
    rig.change(maxReplicas=9, minReplicas=5)
    await rig.play(2)
    assert rig.replicas == 5


async def test_a_stuck_rollout_of_idle_workers_goes_to_zero() -> None:
    rig = AutoscalingRig(maxReplicas=2)
    await rig.put(2)
    await rig.play_until(lambda: rig.replicas == 2)
    deployment = rig.fleet.deployment
    deployment["status"] = {
        "rolling": True,
        "observedGeneration": 100,
        "replicas": 3,
        "updatedReplicas": 1,
    }
    rig.cluster.put(Kind.DEPLOYMENT, deployment)

    await rig.play_until(lambda: rig.replicas == 0)

    assert rig.fleet.taken_busy == []


async def test_a_killed_pod_is_replaced_and_its_job_runs_again() -> None:
    rig = AutoscalingRig(maxReplicas=2, service=6)
    await rig.put(2)
    await rig.play_until(lambda: rig.busy == 2)
    rig.fleet.kill(next(iter(rig.fleet.workers)))

    await rig.play_until(lambda: rig.replicas == 0, most=100)

    assert await rig.unfinished() == 0
    assert rig.fleet.taken_busy == []


async def test_a_smaller_count_is_refused_if_the_deployment_changed_meanwhile() -> None:
    rig = AutoscalingRig(maxReplicas=2)
    await rig.put(2)
    await rig.play_until(lambda: rig.replicas == 2)
    rig.cluster.fail("patch", Kind.DEPLOYMENT, status=409, times=2)

    await rig.play_until(lambda: rig.replicas == 0)

    assert rig.fleet.taken_busy == []


async def test_whom_a_person_cordoned_is_taken_before_idle_ones_once_it_holds_nothing() -> None:
    rig = AutoscalingRig(maxReplicas=3, minReplicas=2, service=3)
    await rig.put(3)
    await rig.play_until(lambda: rig.busy == 3)
    chosen = list(rig.fleet.workers.values())[1]
    chosen.held = {job: (token, rig.fleet.second + 40) for job, (token, _) in chosen.held.items()}
    await rig.play_until(lambda: rig.busy == 1)
    assert chosen.held
    assert await rig.broker.cordon(QUEUE, chosen.incarnation) is not None

    await rig.play(20)
    assert rig.fleet.taken == [], "it is busy, and the others stay for it"
    await rig.play_until(lambda: bool(rig.fleet.taken))

    assert rig.fleet.taken == [chosen.pod]
    assert rig.fleet.taken_busy == []
