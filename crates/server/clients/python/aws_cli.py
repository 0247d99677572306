"""The walk of the README through the AWS CLI: create a queue, send, receive, delete."""

import json
import os
import subprocess
import sys

import checks


class Cli:
    def __init__(self, endpoint):
        self.program = os.path.join(os.path.dirname(sys.executable), "aws")
        self.endpoint = endpoint
        self.url = None

    def __call__(self, *arguments):
        command = [self.program, "--endpoint-url", self.endpoint, "--output", "json", "sqs", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return json.loads(done.stdout) if done.stdout.strip() else None


def create_a_queue(aws):
    aws.url = aws("create-queue", "--queue-name", "hello")["QueueUrl"]
    assert aws.url == aws.endpoint + "/000000000000/hello", aws.url


def send_a_message(aws):
    sent = aws("send-message", "--queue-url", aws.url, "--message-body", "good morning")
    assert sent["MessageId"]


def receive_and_delete_it(aws):
    got = aws("receive-message", "--queue-url", aws.url, "--wait-time-seconds", "5")["Messages"]
    assert [message["Body"] for message in got] == ["good morning"]
    aws("delete-message", "--queue-url", aws.url, "--receipt-handle", got[0]["ReceiptHandle"])


def the_queue_is_listed_and_empty(aws):
    assert aws.url in aws("list-queues")["QueueUrls"]
    assert aws("receive-message", "--queue-url", aws.url) is None


def set_and_show_attributes(aws):
    aws("set-queue-attributes", "--queue-url", aws.url, "--attributes", "VisibilityTimeout=5")
    got = aws("get-queue-attributes", "--queue-url", aws.url, "--attribute-names", "All")
    assert got["Attributes"]["VisibilityTimeout"] == "5"


def a_missing_queue_is_an_error(aws):
    try:
        aws("get-queue-url", "--queue-name", "nobody")
    except AssertionError as error:
        assert "NonExistentQueue" in str(error) or "QueueDoesNotExist" in str(error), error
        return
    raise AssertionError("it was found")


WALK = [create_a_queue, send_a_message, receive_and_delete_it]

if __name__ == "__main__":
    checks.run(
        [*WALK, the_queue_is_listed_and_empty, set_and_show_attributes, a_missing_queue_is_an_error],
        Cli(checks.endpoint()),
    )
