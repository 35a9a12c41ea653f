import { When } from "./When.tsx"

// every page says the same of a forecast and of a raise

/** "used up in 3 h at this rate": the forecast of a limit. */
export const UsedUp = ({ at }: { readonly at: string }) => (
  <>
    used up <When at={at} /> at this rate
  </>
)

/** "raised; the raise ends in 6 d". */
export const RaiseEnds = ({ at }: { readonly at: string }) => (
  <>
    raised; the raise ends <When at={at} />
  </>
)
