import { useState } from "react";
import { type Artifact, ArtifactRole } from "@gen/artifact_pb.js";
import { ticketUrl } from "../../api/artifact_url.js";
import { Problem } from "../../app/errors.js";
import { bytes } from "../../ui/format.js";

// What a job left, to download.
export function Files({ artifacts }: { artifacts: readonly Artifact[] }) {
  const [problem, setProblem] = useState<unknown>(null);
  if (artifacts.length === 0) return null;
  const open = async ({ name, fileName }: Artifact) => {
    setProblem(null);
    try {
      const link = document.createElement("a");
      link.href = await ticketUrl(name);
      link.download = fileName;
      link.click();
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <section aria-labelledby="files-heading">
      <h2 id="files-heading">Files</h2>
      {problem !== null && <Problem error={problem} what="open the file" />}
      <ul className="files">
        {artifacts.map((artifact) => (
          <li key={artifact.name}>
            <button type="button" onClick={() => void open(artifact)}>
              {artifact.fileName}
            </button>{" "}
            {ArtifactRole[artifact.role]?.toLowerCase().replaceAll("_", " ")}, {bytes(artifact.sizeBytes)}{" "}
            <code className="soft">{artifact.sha256.slice(0, 12)}</code>
          </li>
        ))}
      </ul>
    </section>
  );
}
