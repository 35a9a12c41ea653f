import type { ReactNode } from "react"
import styles from "./DialogFooter.module.css"

/** The buttons of a dialog. They are seen however long the dialog is. */
export const DialogFooter = ({ children }: { readonly children: ReactNode }) => (
  <div className={styles.footer}>{children}</div>
)
