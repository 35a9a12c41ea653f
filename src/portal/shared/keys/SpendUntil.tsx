import { When } from "../words/When.tsx"

interface Props {
  readonly of: { readonly spend_until: string | null }
}

/** Until when requests are summed up in what a key has spent. What is used of limits is newer. */
export const SpendUntil = ({ of: { spend_until } }: Props) => (
  <span>
    summed up until <When at={spend_until} absent="now: nothing" />
  </span>
)
