// Calls a coordinator as a browser would, with each of the two gRPC-Web clients there are, and prints what came of it
// as JSON.   node client.mjs URL TOKEN JOB
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import grpcWeb from "grpc-web";
import XHR from "xhr2";

import { BadRequestSchema, ErrorInfoSchema } from "./gen/proto/google/rpc/error_details_pb.js";
import { JobEventSchema } from "./gen/proto/plumbline/v1/event_pb.js";
import { JobSchema } from "./gen/proto/plumbline/v1/job_pb.js";
import {
  CreateJobRequestSchema,
  GetJobRequestSchema,
  JobService,
  WatchJobRequestSchema,
} from "./gen/proto/plumbline/v1/job_service_pb.js";

// Google's client is made for browsers.
globalThis.XMLHttpRequest = XHR;

const [url, token, job] = process.argv.slice(2);
const results = {};

// ---- @connectrpc/connect-web

async function connectWeb() {
  const authorize = (next) => (request) => {
    if (token) request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
  const client = createClient(
    JobService,
    createGrpcWebTransport({ baseUrl: url, interceptors: [authorize] }),
  );
  const result = {};
  result.name = (await client.getJob({ name: job })).name;
  result.events = [];
  for await (const event of client.watchJob({ name: job })) result.events.push(Number(event.sequence));
  try {
    await client.createJob({ spec: { checkpoint: "synthetic:tiny", kind: { case: "blockReplay", value: { layouts: [{ name: "none" }] } } } });
  } catch (error) {
    const connectError = ConnectError.from(error);
    result.refused = {
      code: Code[connectError.code],
      reason: connectError.findDetails(ErrorInfoSchema)[0]?.reason,
      field: connectError.findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field,
    };
  }
  // Leaves a stream that does not end by itself.
  const abort = new AbortController();
  try {
    for await (const update of client.watchJobs({}, { signal: abort.signal })) {
      if (update.update.case === "snapshotComplete") abort.abort();
    }
  } catch (error) {
    result.left = Code[ConnectError.from(error).code];
  }
  // A deadline.
  try {
    for await (const _ of client.watchJobs({}, { timeoutMs: 300 }));
  } catch (error) {
    result.late = Code[ConnectError.from(error).code];
  }
  return result;
}

// ---- grpc-web

function descriptor(name, type, request, response) {
  return new grpcWeb.MethodDescriptor(
    `/plumbline.v1.JobService/${name}`,
    type,
    Object,
    Object,
    (message) => toBinary(request, message),
    (bytes) => fromBinary(response, bytes),
  );
}

async function google(format) {
  const client = new grpcWeb.GrpcWebClientBase({ format });
  const metadata = token ? { authorization: `Bearer ${token}` } : {};
  const unary = (method, request) =>
    new Promise((resolve) => {
      client.rpcCall(url + method.getName(), request, metadata, method, (error, answer) => resolve({ error, answer }));
    });
  const result = {};
  const getJob = descriptor("GetJob", grpcWeb.MethodType.UNARY, GetJobRequestSchema, JobSchema);
  const got = await unary(getJob, create(GetJobRequestSchema, { name: job }));
  result.name = got.answer?.name ?? String(got.error);
  const createJob = descriptor("CreateJob", grpcWeb.MethodType.UNARY, CreateJobRequestSchema, JobSchema);
  const refused = await unary(createJob, create(CreateJobRequestSchema, {}));
  result.refused = refused.error?.code;
  const watchJob = descriptor(
    "WatchJob",
    grpcWeb.MethodType.SERVER_STREAMING,
    WatchJobRequestSchema,
    JobEventSchema,
  );
  result.events = [];
  await new Promise((resolve) => {
    const stream = client.serverStreaming(
      url + watchJob.getName(),
      create(WatchJobRequestSchema, { name: job }),
      metadata,
      watchJob,
    );
    stream.on("data", (event) => result.events.push(Number(event.sequence)));
    stream.on("status", (status) => (result.status = status.code));
    stream.on("error", (error) => resolve((result.error = error.message)));
    stream.on("end", resolve);
  });
  return result;
}

results.connect = await connectWeb();
results.text = await google("text");
results.binary = await google("binary");
console.log(JSON.stringify(results));
process.exit(0);
