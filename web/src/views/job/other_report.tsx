// Reports of kinds without a view of their own: their verdicts, tables and identities as they are.
import { toJson } from "@bufbuild/protobuf";
import { type Report, TaskReportSchema } from "@gen/job_pb.js";
import { idOf } from "../../ui/format.js";
import { OutcomePill } from "../../ui/status.js";
import { JsonView } from "../../ui/json_view.js";

export default function OtherReport({ report }: { report: Report }) {
  return (
    <section aria-labelledby="report-heading">
      <h2 id="report-heading">Report</h2>
      {report.tasks.map((task) => (
        <section key={task.task} aria-label={task.title}>
          <h3>
            {task.title || idOf(task.task)} <OutcomePill verdict={task.verdict} />
          </h3>
          <p>{task.verdict?.sentence}</p>
          <JsonView value={toJson(TaskReportSchema, task)} name={task.kind.case ?? "report"} />
        </section>
      ))}
    </section>
  );
}
