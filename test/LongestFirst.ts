import type { TestSpecification } from "vitest/node"
import { BaseSequencer } from "vitest/node"

/** The files that take longest. One that began last would keep one core busy alone. */
const longest = [
  "test/portal/EveryPage.test.ts",
  "test/linear/LinearTime.test.ts",
  "test/guardrails/redact/TextRedactor.test.ts",
  "test/e2e/Startup.test.ts",
  "test/faults/Statuses.test.ts",
  "test/e2e/HostileUpstreamUi.test.ts",
  "test/e2e/Tasks.test.ts",
  "test/e2e/StartupRefusals.test.ts",
  "test/e2e/Commands.test.ts",
  "test/faults/RetryQueues.test.ts",
  "test/guardrails/detect/LinearTime.test.ts",
  "test/package/Package.test.ts"
]

export class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const sorted = await super.sort(files)
    const rank = ({ moduleId }: TestSpecification) => {
      const at = longest.findIndex((file) => moduleId.endsWith(file))
      return at === -1 ? longest.length : at
    }
    return sorted.toSorted((one, other) => rank(one) - rank(other))
  }
}
