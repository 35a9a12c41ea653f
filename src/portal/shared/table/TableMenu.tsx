import { Button, Menu } from "@mantine/core"
import { IconColumns, IconDownload } from "@tabler/icons-react"
import { saveText } from "../words/saveText.ts"
import styles from "./DataTable.module.css"
import { csvOf } from "./rowsCsv.ts"

export type Density = "comfortable" | "compact"

const densities = [
  ["comfortable", "Comfortable rows"],
  ["compact", "Compact rows"]
] as const

interface Props {
  readonly name: string
  readonly columns: ReadonlyArray<{ readonly id: string; readonly header: string }>
  readonly visibility: Readonly<Record<string, boolean>>
  readonly onChange: (id: string, isShown: boolean) => void
  readonly density: Density
  /** This choice holds for all tables. */
  readonly onDensity: (density: Density) => void
  readonly rows: ReadonlyArray<unknown>
}

/** The menu chooses the columns of a table and how close its rows are, and saves its rows as a file. */
export const TableMenu = ({ columns, density, name, onChange, onDensity, rows, visibility }: Props) => (
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
        onClick={() => saveText(`${name}.csv`, "text/csv", csvOf(rows))}
      >
        CSV of the {rows.length} {rows.length === 1 ? "row" : "rows"} shown
      </Menu.Item>
    </Menu.Dropdown>
  </Menu>
)
