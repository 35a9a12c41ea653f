import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import styles from "./ExceptionMessage.module.css"

/** What an exception said, as it said it. */
export const ExceptionMessage = ({ children }: { readonly children: string }) => (
  <p className={styles.message}>
    <ForeignText>{children}</ForeignText>
  </p>
)
