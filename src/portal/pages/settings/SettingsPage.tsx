import { PageHeader } from "../../shared/page/PageHeader.tsx"

const SettingsPage = () => <PageHeader title="Settings" />

export default SettingsPage
