import { Button } from "@mantine/core"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { countedText } from "../words/format.ts"
import styles from "./HiddenNote.module.css"
import type { Hidden } from "./hidden.ts"

interface Props {
  readonly hidden: Pick<Hidden, "count" | "names">
  readonly isShown: boolean
  readonly onShow: (isShown: boolean) => void
}

/** Says which values are hidden because of their names, and shows them on request. */
export const HiddenNote = ({ hidden: { count, names }, isShown, onShow }: Props) =>
  count > 0 && (
    <p className={styles.note}>
      {isShown ? "Shown" : "Hidden"} because of {names.length === 1 ? "its name" : "their names"}:{" "}
      <ForeignText>{names.slice(0, mostNames).join(", ")}</ForeignText>.{" "}
      <Button variant="subtle" size="compact-sm" onClick={() => onShow(!isShown)}>
        {isShown ? "Hide" : `Show ${countedText(count, "value")}`}
      </Button>
    </p>
  )

const mostNames = 5
