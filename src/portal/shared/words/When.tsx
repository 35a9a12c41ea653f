import { useNow } from "../../address/useNow.ts"
import { useUtc } from "../../address/useUtc.ts"
import { exactText, relativeText } from "./format.ts"

interface Props {
  /** ISO text, or milliseconds. `null`: it has not happened. */
  readonly at: string | number | null | undefined
  /** What stands there if it has not happened. */
  readonly absent?: string
}

/** A time, as far away as it is from now; the exact time is in its hint. */
export const When = ({ absent = "–", at }: Props) => {
  const utc = useUtc()
  const now = useNow(10_000)
  const time = at === null || at === undefined ? Number.NaN : new Date(at).getTime()
  if (Number.isNaN(time)) return <span>{absent}</span>
  const date = new Date(time)
  return (
    // a table has hundreds of these: the hint of the browser costs nothing until it is shown
    <time dateTime={date.toISOString()} title={exactText(date, utc)}>
      {relativeText(time, Math.max(now, Date.now()))}
    </time>
  )
}
