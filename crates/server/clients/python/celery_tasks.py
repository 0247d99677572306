"""A Celery worker that takes its tasks from the server and finishes them.

Run as a script it starts the worker (this module again, as its app), sends tasks and waits for their results.
"""

import os
import subprocess
import sys
import tempfile
from urllib.parse import urlparse

from celery import Celery

ENDPOINT = os.environ.get("MILLPOND_TEST_ENDPOINT", "")
RESULTS = os.environ.get("MILLPOND_TEST_RESULTS", "")

app = Celery("tasks")
if ENDPOINT:
    app.conf.update(
        broker_url=f"sqs://dummy:dummy@{urlparse(ENDPOINT).netloc}//",
        broker_transport_options={
            "region": "us-east-1",
            "is_secure": False,
            "polling_interval": 0.1,
            "wait_time_seconds": 2,
            "visibility_timeout": 60,
            "queue_name_prefix": "celery-",
        },
        result_backend=f"file://{RESULTS}",
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        task_acks_late=True,
        worker_prefetch_multiplier=1,
        broker_connection_retry_on_startup=True,
    )


@app.task
def add(x, y):
    return x + y


@app.task(bind=True, max_retries=3)
def at_the_second_try(self):
    if self.request.retries == 0:
        raise self.retry(countdown=0)
    return "done"


def tasks_are_finished():
    results = [add.delay(number, number) for number in range(20)]
    assert [result.get(timeout=90) for result in results] == [2 * number for number in range(20)]


def a_task_with_a_delay_is_finished():
    assert add.apply_async((1, 2), countdown=1).get(timeout=90) == 3


def a_task_that_is_tried_again_is_finished():
    assert at_the_second_try.delay().get(timeout=90) == "done"


def main():
    import checks

    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as results:
        environment = dict(os.environ, MILLPOND_TEST_ENDPOINT=checks.endpoint(), MILLPOND_TEST_RESULTS=results)
        command = [sys.executable, "-m", "celery", "-A", "celery_tasks", "worker", "--pool", "solo", "-l", "WARNING"]
        worker = subprocess.Popen(command, cwd=here, env=environment)
        try:
            sender = [sys.executable, os.path.join(here, "celery_tasks.py"), "send"]
            code = subprocess.run(sender, cwd=here, env=environment, timeout=300).returncode
        finally:
            worker.terminate()
            try:
                worker.wait(30)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
    sys.exit(code)


def send():
    import checks

    checks.run([tasks_are_finished, a_task_with_a_delay_is_finished, a_task_that_is_tried_again_is_finished])


if __name__ == "__main__":
    # The worker knows tasks by the name of this module.
    import celery_tasks

    celery_tasks.send() if sys.argv[1:] == ["send"] else celery_tasks.main()
