// Answers in the place of a server, for sizes that no test can make for real.
import { type DescMessage, type MessageInitShape, create, toBinary } from "@bufbuild/protobuf";
import type { Page } from "playwright-core";

function frame(flag: number, body: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flag, 0);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}

export async function answer<Desc extends DescMessage>(
  page: Page,
  method: string,
  schema: Desc,
  messages: (requestBody: Buffer) => MessageInitShape<Desc>[],
) {
  await page.route(`**/${method}`, (route) => {
    const request = route.request().postDataBuffer() ?? Buffer.alloc(5);
    const frames = messages(request.subarray(5)).map((message) => frame(0, toBinary(schema, create(schema, message))));
    return route.fulfill({
      status: 200,
      headers: { "content-type": "application/grpc-web+proto" },
      body: Buffer.concat([...frames, frame(0x80, Buffer.from("grpc-status: 0\r\n"))]),
    });
  });
}
