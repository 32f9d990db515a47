//! Pictures as the shaders of this folder take them: RGBA, 8 bits a channel, one word a pixel.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// A picture, row by row.
#[derive(Debug)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub pixels: Vec<u32>,
}

impl Picture {
    /// Writes an RGBA PNG.
    pub fn write(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        self.encode(path)
            .map_err(|error| format!("{}: {error}", path.display()).into())
    }

    fn encode(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let file = BufWriter::new(File::create(path)?);
        let mut encoder = png::Encoder::new(file, self.width, self.height);
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        let bytes: Vec<u8> = self
            .pixels
            .iter()
            .flat_map(|pixel| pixel.to_le_bytes())
            .collect();
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&bytes)?;
        Ok(writer.finish()?)
    }
}
