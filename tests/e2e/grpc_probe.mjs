// grpc_probe.mjs HOST:PORT SERVICE: what a cluster's gRPC probe does. Prints SERVING, NOT_SERVING or what went wrong.
import { connect } from "node:http2";

const [address, service] = process.argv.slice(2);
const states = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
const name = Buffer.from(service);
const message = Buffer.concat([Buffer.from([0x0a, name.length]), name]);
const head = Buffer.alloc(5);
head.writeUInt32BE(message.length, 1);

const session = connect(`http://${address}`);
session.on("error", (error) => console.log(error.code));
const request = session.request({
  ":method": "POST",
  ":path": "/grpc.health.v1.Health/Check",
  "content-type": "application/grpc",
  te: "trailers",
});
const chunks = [];
let status = "no trailers";
request.on("data", (chunk) => chunks.push(chunk));
request.on("trailers", (trailers) => (status = trailers["grpc-status"]));
request.on("end", () => {
  const body = Buffer.concat(chunks);
  // A frame's head, then field 1, a number.
  console.log(status === "0" && body[5] === 8 ? states[body[6]] : `grpc-status ${status}`);
  session.close();
});
request.on("error", () => session.close());
request.end(Buffer.concat([head, message]));
