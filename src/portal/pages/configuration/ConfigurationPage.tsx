import { PageHeader } from "../../shared/page/PageHeader.tsx"

const ConfigurationPage = () => <PageHeader title="Configuration" />

export default ConfigurationPage
