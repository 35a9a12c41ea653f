import { UnstyledButton } from "@mantine/core"
import { IconArrowDown, IconArrowUp } from "@tabler/icons-react"
import type { Column, Sorting } from "./column.ts"
import styles from "./DataTable.module.css"

interface HeaderCellProps<Row> {
  readonly column: Column<Row>
  readonly sorting: Sorting | undefined
}

export const HeaderCell = <Row,>({ column: { header, numeric, sort, width }, sorting }: HeaderCellProps<Row>) => {
  const isSorted = sort !== undefined && sorting?.by === sort
  const isReversed = sorting?.isReversed === true
  return (
    <th
      scope="col"
      data-numeric={numeric || undefined}
      style={{ width }}
      aria-sort={isSorted ? (isReversed ? "ascending" : "descending") : undefined}
    >
      {sort === undefined || sorting === undefined ? (
        header
      ) : (
        <UnstyledButton className={styles.sort} onClick={() => sorting.onSort(sort)}>
          {header}
          {isSorted &&
            (isReversed ? (
              <IconArrowUp size={12} aria-hidden={true} />
            ) : (
              <IconArrowDown size={12} aria-hidden={true} />
            ))}
        </UnstyledButton>
      )}
    </th>
  )
}
