import { Button, Menu, Progress } from "@mantine/core"
import { IconColumns, IconDownload } from "@tabler/icons-react"
import { countText } from "../words/format.ts"
import styles from "./DataTable.module.css"
import { useCsv, type View } from "./useCsv.ts"

export type Density = "comfortable" | "compact"

const densities = [
  ["comfortable", "Comfortable rows"],
  ["compact", "Compact rows"]
] as const

interface Props<Row> extends View<Row> {
  /** Also those that are not shown. */
  readonly columns: View<Row>["columns"]
  readonly visibility: Readonly<Record<string, boolean>>
  readonly onChange: (id: string, isShown: boolean) => void
  readonly density: Density
  /** This choice holds for all tables. */
  readonly onDensity: (density: Density) => void
}

/** The menu chooses the columns of a table and how close its rows are, and saves the view as a file. */
export const TableMenu = <Row,>({ density, onChange, onDensity, visibility, ...view }: Props<Row>) => {
  const { columns, rows } = view
  const csv = useCsv({ ...view, columns: columns.filter(({ id }) => visibility[id]) })
  if (csv.read !== undefined)
    return (
      <Button className={styles.chooser} variant="default" onClick={csv.stop}>
        Stop, {countText(csv.read)} rows read
        <Progress className={styles.progress} value={100} animated aria-label="The file" />
      </Button>
    )
  return (
    <Menu closeOnItemClick={false} position="bottom-end">
      <Menu.Target>
        <Button className={styles.chooser} variant="default" leftSection={<IconColumns size={14} />}>
          Columns, rows, CSV
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {columns.map(({ header, id }) => (
          <Menu.CheckboxItem key={id} checked={visibility[id] === true} onChange={(isShown) => onChange(id, isShown)}>
            {header}
          </Menu.CheckboxItem>
        ))}
        <Menu.Divider />
        {densities.map(([value, label]) => (
          <Menu.RadioItem key={value} value={value} checked={value === density} onChange={() => onDensity(value)}>
            {label}
          </Menu.RadioItem>
        ))}
        <Menu.Divider />
        <Menu.Item
          closeMenuOnClick
          disabled={rows.length === 0}
          leftSection={<IconDownload size={14} />}
          onClick={() => void csv.run()}
        >
          {csv.hasMore
            ? "CSV of this view, with the rows not shown yet"
            : `CSV of the ${rows.length} ${rows.length === 1 ? "row" : "rows"} shown`}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
