import type { QualityBounds } from "@gen/generation_pb.js";
import { measure } from "../../ui/format.js";
import { Pill } from "../../ui/status.js";
import { SavedTable } from "../../ui/saved_table.js";
import type { QualityRow } from "./media.js";

const HEADINGS = ["Seed", "Against the reference", "PSNR, dB", "SSIM", "Temporal RMSE", "Audio relative L2", "Lag, samples", "Verdict"];

function cells({ seed, what, quality }: QualityRow): string[] {
  return [
    seed,
    what,
    quality.psnrDb.toFixed(2),
    quality.ssim.toFixed(5),
    measure(quality.temporalRmse),
    measure(quality.audioRelativeL2),
    String(quality.audioLagSamples),
    quality.gates.length === 0 ? "" : quality.passed ? "passed" : "failed",
  ];
}

// The candidate's quality with what the providers differ by among themselves beside it.
export function QualityTable({ rows, bounds }: { rows: readonly QualityRow[]; bounds: QualityBounds | undefined }) {
  if (rows.length === 0) return null;
  return (
    <>
      <h3>Quality</h3>
      <SavedTable name="quality">
        <caption className="hidden">Quality by seed, with the providers' spread</caption>
        <thead>
          <tr>
            {HEADINGS.map((heading) => (
              <th key={heading} scope="col">
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const [seed, what, ...figures] = cells(row);
            const verdict = figures.pop();
            return (
              <tr key={`${seed} ${what}`}>
                <th scope="row">{seed}</th>
                <td>{what}</td>
                {figures.map((figure, index) => (
                  <td key={HEADINGS[index + 2]}>{figure}</td>
                ))}
                <td>{verdict && <Pill tone={verdict === "passed" ? "good" : "bad"}>{verdict}</Pill>}</td>
              </tr>
            );
          })}
          {bounds && (
            <tr>
              <th scope="row">bounds</th>
              <td>of the contract</td>
              <td>{bounds.psnrDbMin !== undefined && `≥ ${bounds.psnrDbMin}`}</td>
              <td>{bounds.ssimMin !== undefined && `≥ ${bounds.ssimMin}`}</td>
              <td>{bounds.temporalRmseMax !== undefined && `≤ ${bounds.temporalRmseMax}`}</td>
              <td>{bounds.audioRelativeL2Max !== undefined && `≤ ${bounds.audioRelativeL2Max}`}</td>
              <td />
              <td />
            </tr>
          )}
        </tbody>
      </SavedTable>
    </>
  );
}
