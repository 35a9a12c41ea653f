import { countText, moneyText, shortCountText } from "./format.ts"

interface MoneyProps {
  readonly usd: number | null | undefined
  /** Where the tokens come from: the upstream reported them, or they were estimated. */
  readonly source?: string | null
}

const sources: Readonly<Record<string, readonly [mark: string, words: string]>> = {
  reported: ["●", "The upstream reported the tokens."],
  estimated: ["○", "The tokens are estimated."],
  status_only: ["–", "Only the status is known."]
}

export const Money = ({ source, usd }: MoneyProps) => {
  if (usd === null || usd === undefined) return <span>–</span>
  const known = source === null || source === undefined ? undefined : sources[source]
  return (
    <span>
      {moneyText(usd)}
      {known !== undefined && (
        <span role="img" aria-label={known[1]} title={known[1]}>
          {" "}
          {known[0]}
        </span>
      )}
    </span>
  )
}

/** A count, exact in its hint where it is shortened. */
export const Count = ({
  of: count,
  short = false
}: {
  readonly of: number | null | undefined
  readonly short?: boolean
}) => {
  if (count === null || count === undefined) return <span>–</span>
  if (!short || count < 10_000) return <span>{countText(count)}</span>
  return <span title={countText(count)}>{shortCountText(count)}</span>
}
