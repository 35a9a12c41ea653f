import { When } from "../words/When.tsx"

interface Props {
  readonly of: { readonly spend_until: string | null }
}

/** Says until when a key's spend is summed up. The counters of its limits are newer. */
export const SpendUntil = ({ of: { spend_until } }: Props) => (
  <span>
    {spend_until === null ? (
      "nothing summed up yet"
    ) : (
      <>
        summed up until <When at={spend_until} />
      </>
    )}
  </span>
)
