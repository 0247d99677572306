// sqs-consumer, as applications use it: a handler that is called for each message, and failures that come again.

import assert from "node:assert/strict";
import { CreateQueueCommand, GetQueueAttributesCommand, SendMessageBatchCommand } from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";
import { client, run } from "./checks.mjs";

const sqs = client();
const MESSAGES = 50;

async function queue(QueueName) {
  const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName }));
  for (let first = 0; first < MESSAGES; first += 10) {
    const Entries = Array.from({ length: 10 }, (_, n) => ({ Id: `${n}`, MessageBody: `${first + n}` }));
    await sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
  }
  return QueueUrl;
}

async function left(QueueUrl) {
  const AttributeNames = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"];
  const { Attributes } = await sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames }));
  return Object.values(Attributes).reduce((sum, count) => sum + Number(count), 0);
}

// Consumes until the queue is empty; `options` say how.
function consume(QueueUrl, options) {
  return new Promise((resolve, reject) => {
    const consumer = Consumer.create({ queueUrl: QueueUrl, sqs, batchSize: 10, waitTimeSeconds: 1, ...options });
    consumer.on("error", reject);
    consumer.on("empty", () => consumer.stop());
    consumer.on("stopped", resolve);
    consumer.start();
  });
}

async function oneByOne() {
  const url = await queue("js-consumed");
  const seen = new Set();
  let failed = false;
  await consume(url, {
    terminateVisibilityTimeout: true,
    handleMessage: async (message) => {
      if (message.Body === "7" && !failed) {
        failed = true;
        throw new Error("at the first try");
      }
      assert(!seen.has(message.Body), `${message.Body} came twice`);
      seen.add(message.Body);
      return message;
    },
  });
  assert(failed);
  assert.equal(seen.size, MESSAGES);
  assert.equal(await left(url), 0);
}

async function inBatches() {
  const url = await queue("js-consumed-in-batches");
  let seen = 0;
  await consume(url, {
    handleMessageBatch: async (messages) => {
      seen += messages.length;
      return messages;
    },
  });
  assert.equal(seen, MESSAGES);
  assert.equal(await left(url), 0);
}

await run([
  ["a handler is called for each message, and again after a failure", oneByOne],
  ["a handler is called for each batch", inBatches],
]);
