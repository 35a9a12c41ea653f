import { Checkbox } from "@mantine/core"
import { memo, type ReactNode, type RefObject } from "react"
import styles from "./DataTable.module.css"

/** A row does these through a reference: they change with every drawing of the table, which must not draw all rows again. */
export interface RowActions {
  readonly focus: (index: number) => void
  readonly toggle: (id: string) => void
  readonly open: (index: number) => void
}

interface Props {
  readonly id: string
  readonly index: number
  /** Returns the cells of the row at an index. Another function means that the rows or the columns are others. */
  readonly cells: (index: number) => ReactNode
  readonly actions: RefObject<RowActions>
  readonly isCurrent: boolean
  readonly isOpen: boolean
  readonly isLink: boolean
  /** `undefined` where rows cannot be selected. */
  readonly isSelected: boolean | undefined
}

/** A row of a table. Moving through the rows draws two of them again, and not hundreds. */
export const TableRow = memo(({ actions, cells, id, index, isCurrent, isLink, isOpen, isSelected }: Props) => (
  <tr
    data-index={index}
    aria-rowindex={index + 2}
    data-open={isOpen || undefined}
    data-selected={isSelected || undefined}
    data-link={isLink || undefined}
    tabIndex={isCurrent ? 0 : -1}
    onFocus={() => actions.current.focus(index)}
    onClick={(event) => {
      // links and buttons in a cell do what they say; a text that is being selected is not a click
      if (event.target instanceof Element && event.target.closest("a,button,input,label") !== null) return
      if (window.getSelection()?.type !== "Range") actions.current.open(index)
    }}
  >
    {isSelected !== undefined && (
      <td className={styles.select}>
        <Checkbox
          aria-label={`Select ${id}`}
          title="Select (x)"
          checked={isSelected}
          onChange={() => actions.current.toggle(id)}
        />
      </td>
    )}
    {cells(index)}
  </tr>
))
