// What the scripts share: checks that say their names, and a client.

import { SQSClient } from "@aws-sdk/client-sqs";

export function endpoint() {
  if (process.argv.length !== 3) {
    console.error(`usage: node ${process.argv[1]} ENDPOINT`);
    process.exit(1);
  }
  return process.argv[2];
}

export function client() {
  return new SQSClient({
    endpoint: endpoint(),
    region: "us-east-1",
    credentials: { accessKeyId: "dummy", secretAccessKey: "dummy" },
    maxAttempts: 1,
  });
}

// Runs the checks in their order; the first that fails ends it.
export async function run(checks) {
  for (const [name, check] of checks) {
    try {
      await check();
    } catch (error) {
      console.error(error);
      console.log(`FAILED ${name}`);
      process.exit(1);
    }
    console.log(`ok     ${name}`);
  }
  process.exit(0);
}

export async function refused(name, work) {
  try {
    await work;
  } catch (error) {
    if (error.name !== name) throw error;
    return error;
  }
  throw new Error(`it was accepted, and should have been refused with ${name}`);
}
