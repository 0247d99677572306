"""Every action of SQS through boto3, in whichever encoding this version of it speaks."""

import json
import time
import urllib.request

import boto3
import botocore
from botocore.config import Config

import checks

NON_EXISTENT = "AWS.SimpleQueueService.NonExistentQueue"
UNSUPPORTED = "AWS.SimpleQueueService.UnsupportedOperation"


def client(endpoint):
    return boto3.client(
        "sqs",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="dummy",
        aws_secret_access_key="dummy",
        config=Config(retries={"max_attempts": 1}),
    )


def protocol(sqs):
    return sqs.meta.service_model.metadata["protocol"]


def advance(sqs, seconds):
    body = json.dumps({"seconds": seconds}).encode()
    request = urllib.request.Request(sqs.meta.endpoint_url + "/test-clock/advance", data=body)
    urllib.request.urlopen(request).read()


def make(sqs, name, **attributes):
    return sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]


def arn(sqs, url):
    got = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return got["Attributes"]["QueueArn"]


def create_get_list_and_delete_queues(sqs):
    url = make(sqs, "py-first", VisibilityTimeout="45")
    assert url.endswith("/000000000000/py-first"), url
    assert make(sqs, "py-first", VisibilityTimeout="45") == url
    checks.refused(("QueueAlreadyExists", "QueueNameExists"), make, sqs=sqs, name="py-first", VisibilityTimeout="46")
    assert sqs.get_queue_url(QueueName="py-first")["QueueUrl"] == url
    make(sqs, "py-second")
    assert sqs.list_queues(QueueNamePrefix="py-f")["QueueUrls"] == [url]
    page = sqs.list_queues(QueueNamePrefix="py-", MaxResults=1)
    rest = sqs.list_queues(QueueNamePrefix="py-", MaxResults=1, NextToken=page["NextToken"])
    assert sorted(page["QueueUrls"] + rest["QueueUrls"])[0] == url
    assert "QueueUrls" not in sqs.list_queues(QueueNamePrefix="nobody-has-this")
    sqs.delete_queue(QueueUrl=url)
    answer = checks.refused(NON_EXISTENT, sqs.get_queue_url, QueueName="py-first")
    assert answer["Error"]["Message"].startswith("The specified queue does not exist"), answer
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 400
    checks.refused(("InvalidParameterValue", "InvalidParameterValueException"), make, sqs=sqs, name="not a name")


def get_and_set_attributes(sqs):
    url = make(sqs, "py-attributes")
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "3", "MaximumMessageSize": "2048"})
    got = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert got["DelaySeconds"] == "3" and got["MaximumMessageSize"] == "2048", got
    assert got["VisibilityTimeout"] == "30" and got["ApproximateNumberOfMessages"] == "0", got
    assert "Policy" not in got and "RedrivePolicy" not in got, got
    checks.refused("InvalidAttributeName", sqs.set_queue_attributes, QueueUrl=url, Attributes={"Colour": "red"})
    checks.refused("InvalidAttributeValue", sqs.set_queue_attributes, QueueUrl=url, Attributes={"DelaySeconds": "901"})
    policy = '{"Version": "2012-10-17",  "Statement": []}'
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    got = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])["Attributes"]
    assert got["Policy"] == policy, "a policy comes back as it was given"


def send_receive_and_delete_messages(sqs):
    url = make(sqs, "py-messages")
    body = "grüß dich 🦆 <&\"'> \r\n\t"
    attributes = {
        "text": {"DataType": "String.kind", "StringValue": "é"},
        "count": {"DataType": "Number", "StringValue": "7"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }
    sent = sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attributes)
    assert "MD5OfMessageAttributes" in sent and "SequenceNumber" not in sent, sent
    got = sqs.receive_message(QueueUrl=url, AttributeNames=["All"], MessageAttributeNames=["All"])["Messages"]
    assert len(got) == 1 and got[0]["Body"] == body, got
    assert got[0]["MessageId"] == sent["MessageId"] and got[0]["MD5OfBody"] == sent["MD5OfMessageBody"], got
    assert got[0]["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"], got
    back = got[0]["MessageAttributes"]
    assert back["raw"]["BinaryValue"] == b"\x00\xff" and back["text"]["DataType"] == "String.kind", back
    assert got[0]["Attributes"]["ApproximateReceiveCount"] == "1", got
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=got[0]["ReceiptHandle"], VisibilityTimeout=0)
    again = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=5, AttributeNames=["ApproximateReceiveCount"])["Messages"]
    assert again[0]["Attributes"] == {"ApproximateReceiveCount": "2"}, again
    assert "MessageAttributes" not in again[0] and "MD5OfMessageAttributes" not in again[0], again
    sqs.delete_message(QueueUrl=url, ReceiptHandle=again[0]["ReceiptHandle"])
    sqs.delete_message(QueueUrl=url, ReceiptHandle=again[0]["ReceiptHandle"])
    checks.refused("ReceiptHandleIsInvalid", sqs.delete_message, QueueUrl=url, ReceiptHandle="garbage")
    checks.refused("InvalidMessageContents", sqs.send_message, QueueUrl=url, MessageBody="\x01")
    checks.refused(("MissingParameter", "MissingRequiredParameterException"), sqs.send_message, QueueUrl=url, MessageBody="")


def visibility_and_delay_follow_the_clock(sqs):
    url = make(sqs, "py-clock", VisibilityTimeout="600")
    sqs.send_message(QueueUrl=url, MessageBody="later", DelaySeconds=900)
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    advance(sqs, 901)
    assert sqs.receive_message(QueueUrl=url)["Messages"][0]["Body"] == "later"
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    advance(sqs, 601)
    assert sqs.receive_message(QueueUrl=url)["Messages"][0]["Body"] == "later"


def batches_are_answered_entry_by_entry(sqs):
    url = make(sqs, "py-batches")
    entries = [{"Id": str(n), "MessageBody": str(n) if n != 1 else "\x01"} for n in range(4)]
    sent = sqs.send_message_batch(QueueUrl=url, Entries=entries)
    assert sorted(entry["Id"] for entry in sent["Successful"]) == ["0", "2", "3"], sent
    assert [entry["Id"] for entry in sent["Failed"]] == ["1"] and sent["Failed"][0]["SenderFault"], sent
    got = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert len(got) == 3, got
    handles = [{"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]} for n, message in enumerate(got)]
    changed = sqs.change_message_visibility_batch(
        QueueUrl=url, Entries=[dict(entry, VisibilityTimeout=100) for entry in handles]
    )
    assert len(changed["Successful"]) == 3 and "Failed" not in changed, changed
    deleted = sqs.delete_message_batch(QueueUrl=url, Entries=handles + [{"Id": "x", "ReceiptHandle": "garbage"}])
    assert len(deleted["Successful"]) == 3 and deleted["Failed"][0]["Id"] == "x", deleted
    legacy = "AWS.SimpleQueueService."
    twice = [{"Id": "a", "MessageBody": "x"}, {"Id": "a", "MessageBody": "y"}]
    checks.refused(legacy + "BatchEntryIdsNotDistinct", sqs.send_message_batch, QueueUrl=url, Entries=twice)
    many = [{"Id": str(n), "MessageBody": "x"} for n in range(11)]
    checks.refused(legacy + "TooManyEntriesInBatchRequest", sqs.send_message_batch, QueueUrl=url, Entries=many)
    checks.refused(legacy + "EmptyBatchRequest", sqs.send_message_batch, QueueUrl=url, Entries=[])


def purge_empties_a_queue_once_a_minute(sqs):
    url = make(sqs, "py-purged")
    for number in range(3):
        sqs.send_message(QueueUrl=url, MessageBody=str(number))
    sqs.purge_queue(QueueUrl=url)
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    checks.refused("AWS.SimpleQueueService.PurgeQueueInProgress", sqs.purge_queue, QueueUrl=url)
    advance(sqs, 61)
    sqs.purge_queue(QueueUrl=url)


def fifo_queues_keep_order_and_drop_duplicates(sqs):
    url = make(sqs, "py-line.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    first = sqs.send_message(QueueUrl=url, MessageBody="a1", MessageGroupId="a")
    sqs.send_message(QueueUrl=url, MessageBody="a2", MessageGroupId="a")
    sqs.send_message(QueueUrl=url, MessageBody="b1", MessageGroupId="b")
    again = sqs.send_message(QueueUrl=url, MessageBody="a1", MessageGroupId="a")
    assert again["MessageId"] == first["MessageId"] and again["SequenceNumber"] == first["SequenceNumber"]
    got = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"])["Messages"]
    assert [message["Body"] for message in got] == ["a1", "a2", "b1"], got
    assert got[0]["Attributes"]["MessageGroupId"] == "a", got
    checks.refused(("MissingParameter", "MissingRequiredParameterException"), sqs.send_message, QueueUrl=url, MessageBody="x")


def ended_move(sqs, source):
    """The last task that moves messages from a queue, when it has ended."""
    for _ in range(300):
        task = sqs.list_message_move_tasks(SourceArn=arn(sqs, source))["Results"][0]
        if task["Status"] not in ("RUNNING", "CANCELLING"):
            break
        time.sleep(0.1)
    return task


def dead_letters_are_moved_and_moved_back(sqs):
    dead = make(sqs, "py-dead")
    policy = json.dumps({"deadLetterTargetArn": arn(sqs, dead), "maxReceiveCount": 1})
    work = make(sqs, "py-work", RedrivePolicy=policy)
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [work]
    sqs.send_message(QueueUrl=work, MessageBody="poison")
    sqs.receive_message(QueueUrl=work)
    advance(sqs, 31)
    assert "Messages" not in sqs.receive_message(QueueUrl=work)
    got = sqs.receive_message(QueueUrl=dead, AttributeNames=["All"], VisibilityTimeout=0)["Messages"]
    assert got[0]["Attributes"]["DeadLetterQueueSourceArn"] == arn(sqs, work), got
    handle = sqs.start_message_move_task(SourceArn=arn(sqs, dead))["TaskHandle"]
    task = ended_move(sqs, dead)
    assert task["Status"] == "COMPLETED" and task["ApproximateNumberOfMessagesMoved"] == 1, task
    assert sqs.receive_message(QueueUrl=work)["Messages"][0]["Body"] == "poison"
    checks.refused(UNSUPPORTED, sqs.cancel_message_move_task, TaskHandle=handle)


def a_move_that_is_cancelled_leaves_the_rest_where_it_is(sqs):
    dead = make(sqs, "py-slow-dead")
    policy = json.dumps({"deadLetterTargetArn": arn(sqs, dead), "maxReceiveCount": 1})
    work = make(sqs, "py-slow-work", RedrivePolicy=policy)
    entries = [{"Id": str(n), "MessageBody": str(n)} for n in range(10)]
    sqs.send_message_batch(QueueUrl=dead, Entries=entries)
    arns = {"SourceArn": arn(sqs, dead), "DestinationArn": arn(sqs, work)}
    handle = sqs.start_message_move_task(**arns, MaxNumberOfMessagesPerSecond=1)["TaskHandle"]
    task = sqs.list_message_move_tasks(SourceArn=arns["SourceArn"])["Results"][0]
    assert task["Status"] == "RUNNING" and task["TaskHandle"] == handle, task
    assert task["DestinationArn"] == arns["DestinationArn"] and task["MaxNumberOfMessagesPerSecond"] == 1, task
    assert task["ApproximateNumberOfMessagesToMove"] == 10, task
    checks.refused(("InvalidParameterValue", "InvalidParameterValueException"), sqs.start_message_move_task, **arns)
    moved = sqs.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"]
    task = ended_move(sqs, dead)
    assert task["Status"] == "CANCELLED" and "TaskHandle" not in task, task
    assert moved <= task["ApproximateNumberOfMessagesMoved"] < 10, (moved, task)
    left = sqs.receive_message(QueueUrl=dead, MaxNumberOfMessages=10)["Messages"]
    assert len(left) == 10 - task["ApproximateNumberOfMessagesMoved"], (left, task)
    checks.refused(UNSUPPORTED, sqs.cancel_message_move_task, TaskHandle=handle)


def tags_and_permissions(sqs):
    url = make(sqs, "py-tags")
    assert "Tags" not in sqs.list_queue_tags(QueueUrl=url)
    sqs.tag_queue(QueueUrl=url, Tags={"team": "blue", "x": "y"})
    sqs.untag_queue(QueueUrl=url, TagKeys=["x"])
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "blue"}
    sqs.add_permission(QueueUrl=url, Label="friends", AWSAccountIds=["111122223333"], Actions=["SendMessage"])
    got = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])["Attributes"]
    assert json.loads(got["Policy"])["Statement"][0]["Sid"] == "friends", got
    sqs.remove_permission(QueueUrl=url, Label="friends")
    checks.refused(("InvalidParameterValue", "InvalidParameterValueException"), sqs.remove_permission, QueueUrl=url, Label="friends")


def requests_on_queue_paths_and_by_get_are_answered(sqs):
    url = make(sqs, "py-paths")
    form = b"Action=SendMessage&Version=2012-11-05&MessageBody=by+path"
    answer = urllib.request.urlopen(url, data=form).read().decode()
    assert "<MessageId>" in answer and "<RequestId>" in answer, answer
    answer = urllib.request.urlopen(url + "?Action=ReceiveMessage&Version=2012-11-05").read().decode()
    assert "<Body>by path</Body>" in answer, answer


def main():
    sqs = client(checks.endpoint())
    print(f"boto3 {boto3.__version__}, botocore {botocore.__version__}, protocol {protocol(sqs)}")
    checks.run(
        [
            create_get_list_and_delete_queues,
            get_and_set_attributes,
            send_receive_and_delete_messages,
            visibility_and_delay_follow_the_clock,
            batches_are_answered_entry_by_entry,
            purge_empties_a_queue_once_a_minute,
            fifo_queues_keep_order_and_drop_duplicates,
            dead_letters_are_moved_and_moved_back,
            a_move_that_is_cancelled_leaves_the_rest_where_it_is,
            tags_and_permissions,
            requests_on_queue_paths_and_by_get_are_answered,
        ],
        sqs,
    )


if __name__ == "__main__":
    main()
