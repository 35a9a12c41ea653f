import { Button, Menu } from "@mantine/core"
import { IconColumns, IconDownload } from "@tabler/icons-react"
import { saveText } from "../words/saveText.ts"
import styles from "./DataTable.module.css"
import { csvOf } from "./rowsCsv.ts"

interface Props {
  readonly name: string
  readonly columns: ReadonlyArray<{ readonly id: string; readonly header: string }>
  readonly visibility: Readonly<Record<string, boolean>>
  readonly onChange: (id: string, isShown: boolean) => void
  readonly rows: ReadonlyArray<unknown>
}

/** Which columns a table has, and its rows as a file. */
export const TableMenu = ({ columns, name, onChange, rows, visibility }: Props) => (
  <Menu closeOnItemClick={false} position="bottom-end">
    <Menu.Target>
      <Button className={styles.chooser} variant="default" leftSection={<IconColumns size={14} />}>
        Columns · CSV
      </Button>
    </Menu.Target>
    <Menu.Dropdown>
      {columns.map(({ header, id }) => (
        <Menu.Item
          key={id}
          role="menuitemcheckbox"
          aria-checked={visibility[id] === true}
          onClick={() => onChange(id, visibility[id] !== true)}
          rightSection={visibility[id] === true ? "✓" : ""}
        >
          {header}
        </Menu.Item>
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
