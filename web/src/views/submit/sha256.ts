import { sha256 as hasher } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";

const PART_BYTES = 4 << 20;

// Hexadecimal SHA-256 of a file, read in parts. (The browser's own digest wants the whole file in memory, and exists on
// https and loopback alone.)
export async function sha256(file: Blob): Promise<string> {
  const hash = hasher.create();
  for (let offset = 0; offset < file.size; offset += PART_BYTES) {
    hash.update(new Uint8Array(await file.slice(offset, offset + PART_BYTES).arrayBuffer()));
  }
  return bytesToHex(hash.digest());
}
