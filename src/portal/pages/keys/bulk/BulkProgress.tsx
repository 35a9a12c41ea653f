import { Progress } from "@mantine/core"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { countText } from "../../../shared/words/format.ts"
import type { Key } from "../words/key.ts"
import type { BulkResult } from "./runBulk.ts"

interface Props {
  readonly total: number
  readonly results: ReadonlyArray<BulkResult<unknown>>
  readonly nameOf: (id: string) => Key | undefined
}

/** How far it is, and what failed. */
export const BulkProgress = ({ nameOf, results, total }: Props) => {
  const failed = results.filter(({ failure }) => failure !== undefined)
  return (
    <>
      <Progress value={total === 0 ? 100 : (results.length / total) * 100} aria-label="Progress" />
      <p role="status">
        {countText(results.length - failed.length)} of {countText(total)} done
        {failed.length > 0 && `, ${countText(failed.length)} failed`}.
      </p>
      {failed.length > 0 && (
        <ul>
          {failed.map(({ failure, id }) => (
            <li key={id}>
              <ForeignText>{nameOf(id)?.name ?? nameOf(id)?.key_prefix ?? id}</ForeignText>: {failure}
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
