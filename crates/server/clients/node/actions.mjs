// Every action through @aws-sdk/client-sqs, which checks the MD5 sums of bodies by itself and takes the host of a queue's
// URL as its endpoint.

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import * as sqs from "@aws-sdk/client-sqs";
import { client, endpoint, refused, run } from "./checks.mjs";

const aws = client();
const send = (Command, input) => aws.send(new Command(input));
const make = async (QueueName, Attributes) =>
  (await send(sqs.CreateQueueCommand, { QueueName, Attributes })).QueueUrl;
const arn = async (QueueUrl) =>
  (await send(sqs.GetQueueAttributesCommand, { QueueUrl, AttributeNames: ["QueueArn"] })).Attributes.QueueArn;

async function advance(seconds) {
  const body = JSON.stringify({ seconds });
  const answer = await fetch(`${endpoint()}/test-clock/advance`, { method: "POST", body });
  assert.equal(answer.status, 200);
}

async function queues() {
  const url = await make("js-first", { VisibilityTimeout: "45" });
  assert.equal(url, `${endpoint()}/000000000000/js-first`);
  assert.equal((await send(sqs.GetQueueUrlCommand, { QueueName: "js-first" })).QueueUrl, url);
  assert.deepEqual((await send(sqs.ListQueuesCommand, { QueueNamePrefix: "js-f" })).QueueUrls, [url]);
  await send(sqs.SetQueueAttributesCommand, { QueueUrl: url, Attributes: { DelaySeconds: "3" } });
  const got = await send(sqs.GetQueueAttributesCommand, { QueueUrl: url, AttributeNames: ["All"] });
  assert.equal(got.Attributes.DelaySeconds, "3");
  await send(sqs.TagQueueCommand, { QueueUrl: url, Tags: { a: "b", c: "d" } });
  await send(sqs.UntagQueueCommand, { QueueUrl: url, TagKeys: ["c"] });
  assert.deepEqual((await send(sqs.ListQueueTagsCommand, { QueueUrl: url })).Tags, { a: "b" });
  const permission = { QueueUrl: url, Label: "l", AWSAccountIds: ["111122223333"], Actions: ["SendMessage"] };
  await send(sqs.AddPermissionCommand, permission);
  await send(sqs.RemovePermissionCommand, { QueueUrl: url, Label: "l" });
  await send(sqs.DeleteQueueCommand, { QueueUrl: url });
  await refused("QueueDoesNotExist", send(sqs.GetQueueUrlCommand, { QueueName: "js-first" }));
}

async function messages() {
  const QueueUrl = await make("js-messages");
  const MessageAttributes = {
    n: { DataType: "Number", StringValue: "7" },
    b: { DataType: "Binary", BinaryValue: new Uint8Array([0, 255]) },
  };
  await send(sqs.SendMessageCommand, { QueueUrl, MessageBody: "grüß dich 🦆", MessageAttributes });
  const receive = { QueueUrl, MessageAttributeNames: ["All"], MessageSystemAttributeNames: ["All"] };
  const [message] = (await send(sqs.ReceiveMessageCommand, receive)).Messages;
  assert.equal(message.Body, "grüß dich 🦆");
  assert.deepEqual([...message.MessageAttributes.b.BinaryValue], [0, 255]);
  assert.equal((await send(sqs.ReceiveMessageCommand, receive)).Messages, undefined);
  const { ReceiptHandle } = message;
  await send(sqs.ChangeMessageVisibilityCommand, { QueueUrl, ReceiptHandle, VisibilityTimeout: 0 });
  const again = (await send(sqs.ReceiveMessageCommand, { ...receive, WaitTimeSeconds: 5 })).Messages;
  assert.equal(again[0].Attributes.ApproximateReceiveCount, "2");
  await send(sqs.DeleteMessageCommand, { QueueUrl, ReceiptHandle: again[0].ReceiptHandle });
  await refused("ReceiptHandleIsInvalid", send(sqs.DeleteMessageCommand, { QueueUrl, ReceiptHandle: "garbage" }));
}

async function batches() {
  const QueueUrl = await make("js-batches");
  const Entries = ["a", "b", "c"].map((Id) => ({ Id, MessageBody: Id }));
  assert.equal((await send(sqs.SendMessageBatchCommand, { QueueUrl, Entries })).Successful.length, 3);
  const got = (await send(sqs.ReceiveMessageCommand, { QueueUrl, MaxNumberOfMessages: 10 })).Messages;
  const handles = got.map(({ ReceiptHandle }, index) => ({ Id: `${index}`, ReceiptHandle }));
  const longer = handles.map((entry) => ({ ...entry, VisibilityTimeout: 100 }));
  const changed = await send(sqs.ChangeMessageVisibilityBatchCommand, { QueueUrl, Entries: longer });
  assert.equal(changed.Successful.length, 3);
  const deleted = await send(sqs.DeleteMessageBatchCommand, { QueueUrl, Entries: handles });
  assert.equal(deleted.Successful.length, 3);
  await send(sqs.PurgeQueueCommand, { QueueUrl });
}

async function fifo() {
  const QueueUrl = await make("js-line.fifo", { FifoQueue: "true", ContentBasedDeduplication: "true" });
  for (const [MessageGroupId, MessageBody] of [["a", "a1"], ["a", "a2"], ["b", "b1"], ["a", "a1"]]) {
    await send(sqs.SendMessageCommand, { QueueUrl, MessageGroupId, MessageBody });
  }
  const got = (await send(sqs.ReceiveMessageCommand, { QueueUrl, MaxNumberOfMessages: 10 })).Messages;
  assert.deepEqual(got.map((message) => message.Body), ["a1", "a2", "b1"]);
}

async function deadLetters() {
  const dead = await make("js-dead");
  const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: await arn(dead), maxReceiveCount: 1 });
  const QueueUrl = await make("js-work", { RedrivePolicy });
  const sources = await send(sqs.ListDeadLetterSourceQueuesCommand, { QueueUrl: dead });
  assert.deepEqual(sources.queueUrls, [QueueUrl]);
  await send(sqs.SendMessageCommand, { QueueUrl, MessageBody: "poison" });
  await send(sqs.ReceiveMessageCommand, { QueueUrl });
  await advance(31);
  assert.equal((await send(sqs.ReceiveMessageCommand, { QueueUrl })).Messages, undefined);
  const SourceArn = await arn(dead);
  const { TaskHandle } = await send(sqs.StartMessageMoveTaskCommand, { SourceArn });
  let task;
  for (let tries = 0; tries < 300; tries += 1) {
    [task] = (await send(sqs.ListMessageMoveTasksCommand, { SourceArn })).Results;
    if (task.Status !== "RUNNING") break;
    await pause(100);
  }
  assert.equal(task.Status, "COMPLETED");
  assert.equal((await send(sqs.ReceiveMessageCommand, { QueueUrl })).Messages[0].Body, "poison");
  await assert.rejects(send(sqs.CancelMessageMoveTaskCommand, { TaskHandle }));
}

await run([
  ["queues are made, found, changed, tagged and deleted", queues],
  ["messages are sent, received, kept back and deleted", messages],
  ["batches are answered entry by entry", batches],
  ["fifo queues keep order and drop duplicates", fifo],
  ["dead letters are moved and moved back", deadLetters],
]);
