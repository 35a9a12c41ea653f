import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { useReplayCount } from "../../../shared/tasks/useReplayCount.ts"
import { countText } from "../../../shared/words/format.ts"
import { filterWords, type LetterFilter } from "./letterFilter.ts"

interface Props {
  readonly filter: LetterFilter
}

/** Shows the server's count of the open letters that match. */
export const AllLettersCount = ({ filter }: Props) => {
  const { data, error, refetch } = useReplayCount({ filter })
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />
  if (data === undefined) return <strong>all that match</strong>
  return (
    <strong>
      all {data.truncated && "of more than "}
      {countText(data.total)} that match
    </strong>
  )
}

/** Names the letters that an operation is about, and says what happens with more than the server takes at once. */
export const AllLetters = ({ filter }: Props) => {
  const { data } = useReplayCount({ filter })
  return (
    <>
      <p>
        All letters that match <ForeignText>{filterWords(filter)}</ForeignText>
        {data !== undefined && !data.truncated && `: ${countText(data.total)} now`}. The server picks them when the
        request arrives.
      </p>
      {data?.truncated === true && (
        <p>More match than one request takes: the newest {countText(data.total)} are taken. Repeat it for the rest.</p>
      )}
    </>
  )
}
