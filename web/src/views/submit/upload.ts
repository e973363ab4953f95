import { sha256 } from "./sha256.js";
import type { artifacts } from "../../api/client.js";

const PART_BYTES = 1 << 20;

// Sends a file's bytes; the artifact's name. `progress` is told the fraction that has been sent.
export async function upload(client: typeof artifacts, file: File, progress: (fraction: number) => void): Promise<string> {
  const digest = await sha256(file);
  const begun = await client.createUpload({ fileName: file.name, sizeBytes: BigInt(file.size), sha256: digest });
  if (begun.artifact) return begun.artifact;
  for (let offset = 0; offset < file.size; offset += PART_BYTES) {
    const data = new Uint8Array(await file.slice(offset, offset + PART_BYTES).arrayBuffer());
    await client.writeUpload({ name: begun.name, offset: BigInt(offset), data });
    progress(Math.min(1, (offset + data.length) / file.size));
  }
  return (await client.finishUpload({ name: begun.name, sizeBytes: BigInt(file.size), sha256: digest })).name;
}
