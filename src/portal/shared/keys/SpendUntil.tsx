import { When } from "../words/When.tsx"

interface Props {
  readonly of: { readonly spend_until: string | null }
}

/** Until when requests are summed up in what a key has spent. What is used of limits is newer. */
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
