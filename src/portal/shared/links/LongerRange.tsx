import { Button } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { ranges, useRange } from "../../address/range.ts"

const longest = "30d"
const minuteMs = 60_000

/** A link to the same page with a range of 30 days. Nothing, if the range of the page is as long already. */
export const LongerRange = () => {
  const { range } = useRange()
  if (range.to.getTime() - range.from.getTime() >= ranges[longest] * minuteMs) return null
  return (
    <Button
      variant="default"
      renderRoot={(props) => (
        <Link {...props} to="." search={(before) => ({ ...before, range: longest })} replace={true} />
      )}
    >
      Look at 30 days
    </Button>
  )
}
